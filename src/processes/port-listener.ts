import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { platform } from 'node:os';

/** A program's socket that waits for connections. */
export interface PortListener {
  /** Account of the program. */
  readonly userId: number;
  /** Identifies the socket on this machine. */
  readonly socketId: string;
}

/**
 * Finds who listens on a TCP port of this machine, on whatever address; empty when nobody does.
 * Undefined where the system does not tell (anything but Linux).
 */
export function findListeners(port: number): readonly PortListener[] | undefined {
  if (platform() !== 'linux') return undefined;
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((file) => listenersIn(file, port));
}

/** Whether one of the processes holds one of the sockets. Linux only. */
export function holdsSocket(pids: readonly number[], listeners: readonly PortListener[]): boolean {
  const links = new Set(listeners.map(({ socketId }) => `socket:[${socketId}]`));
  return pids.some((pid) => descriptorsOf(pid).some((link) => links.has(link)));
}

const listenState = '0A';

function listenersIn(file: string, port: number): PortListener[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readTable(file)
    .split('\n')
    .flatMap((line) => {
      const [, local, , state, , , , userId, , socketId = ''] = line.trim().split(/\s+/);
      if (!local?.endsWith(suffix) || state !== listenState) return [];
      return [{ userId: Number(userId), socketId }];
    });
}

function readTable(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    // A machine without IPv6 has no tcp6.
    return '';
  }
}

function descriptorsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).flatMap((name) => linkTarget(`/proc/${pid}/fd/${name}`));
  } catch {
    return [];
  }
}

function linkTarget(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    // Closed between the listing and now.
    return [];
  }
}
