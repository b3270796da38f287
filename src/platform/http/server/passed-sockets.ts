import { pid as ownPid } from 'node:process';
import { StartupError } from '../../errors.ts';

/** Settings of `Hub` with an address for which a socket may be passed, by `FileDescriptorName=`. */
const names = ['bind_url', 'hub_bind_url', 'redirect_bind_url'];
/** `SD_LISTEN_FDS_START` of sd_listen_fds(3). */
const firstDescriptor = 3;

/**
 * Sockets that the service manager listens with in the place of this process (sd_listen_fds(3)): their file descriptors
 * by the names above. Throws StartupError where one would be left without anybody who answers.
 */
export function passedSockets({
  LISTEN_PID: pid,
  LISTEN_FDS: count,
  LISTEN_FDNAMES: named = '',
}: Readonly<Record<string, string | undefined>>): ReadonlyMap<string, number> {
  const sockets = new Map<string, number>();
  if (Number(pid) !== ownPid) return sockets;
  const given = named.split(':');
  for (let index = 0; index < Number(count); index += 1) {
    const name = given[index] ?? '';
    if (!names.includes(name) || sockets.has(name)) {
      throw new StartupError(
        `The socket "${name}" of the service manager cannot be used: FileDescriptorName= is one of ${names.join(', ')}, each for one ListenStream=`,
      );
    }
    sockets.set(name, firstDescriptor + index);
  }
  return sockets;
}
