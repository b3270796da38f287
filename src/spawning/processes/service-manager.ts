import { closeSync, writeSync } from 'node:fs';
import { pid as ownPid } from 'node:process';
import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';

/** What is told to the program that supervises the hub (systemd), by the protocol of sd_notify(3). */
export interface ServiceManager extends Disposable {
  /** Says that the start, or a reload, is over, with a line for `systemctl status`. */
  ready(status: string): void;
  reloading(): void;
  stopping(): void;
}

const noServiceManager: ServiceManager = {
  ready() {},
  reloading() {},
  stopping() {},
  [Symbol.dispose]() {},
};

/**
 * Connects to the service manager that the environment names (`NOTIFY_SOCKET`), and shows it that the
 * event loop turns as often as it wants to know (`WATCHDOG_USEC`). Without one nothing is told. Never
 * throws: what is wrong goes to `onProblem`.
 */
export async function connectServiceManager(
  environment: Readonly<Record<string, string | undefined>>,
  onProblem: (error: unknown) => void,
): Promise<ServiceManager> {
  const { NOTIFY_SOCKET: path = '' } = environment;
  if (path === '') return noServiceManager;
  let descriptor: number;
  try {
    descriptor = await openDatagramSocket(path);
  } catch (thrown) {
    onProblem(thrown);
    return noServiceManager;
  }

  function send(...lines: readonly string[]): void {
    try {
      writeSync(descriptor, lines.join('\n'));
    } catch (thrown) {
      onProblem(thrown);
    }
  }
  const watchdog = startWatchdog(environment, () => send('WATCHDOG=1'));
  send('STATUS=Starting');

  return {
    ready: (status) => send('READY=1', `STATUS=${status.replaceAll('\n', ' ')}`),
    reloading() {
      const monotonicUs = process.hrtime.bigint() / 1000n;
      send('RELOADING=1', `MONOTONIC_USEC=${monotonicUs}`, 'STATUS=Reloading');
    },
    stopping: () => send('STOPPING=1', 'STATUS=Stopping'),
    [Symbol.dispose]() {
      watchdog?.[Symbol.dispose]();
      closeSync(descriptor);
    },
  };
}

/** Pings twice per interval (sd_watchdog_enabled(3)), from a timer: when the event loop hangs, none comes. */
function startWatchdog(
  { WATCHDOG_USEC: interval, WATCHDOG_PID: pid }: Readonly<Record<string, string | undefined>>,
  ping: () => void,
): Periodic | undefined {
  const intervalMs = Number(interval) / 1000;
  if (!(intervalMs > 0) || (pid !== undefined && Number(pid) !== ownPid)) return undefined;
  ping();
  return createPeriodic({ intervalMs: intervalMs / 2, work: ping, onError: () => {} });
}

const [addressFamilyUnix, socketDatagram, closeOnExec, nonBlocking] = [1, 2, 0o2000000, 0o4000];

/**
 * Connects a datagram socket of the Unix domain, which Node.js cannot: its file descriptor. systemd looks at the
 * process a message comes from, and one that the main process itself sends needs no NotifyAccess=all,
 * by which users' servers could speak for the hub.
 */
async function openDatagramSocket(path: string): Promise<number> {
  const { default: koffi } = await import('koffi');
  const libc = koffi.load(null);
  const createSocket = libc.func('int socket(int, int, int)');
  const connect = libc.func('int connect(int, const void *, uint32_t)');

  const descriptor = createSocket(addressFamilyUnix, socketDatagram | closeOnExec | nonBlocking, 0);
  if (descriptor < 0) throw new Error(`socket: error ${koffi.errno()}`);
  const address = Buffer.alloc(2 + Buffer.byteLength(path));
  address.writeUInt16LE(addressFamilyUnix);
  address.write(path, 2);
  // An address without a file (unix(7), abstract) begins with NUL.
  if (path.startsWith('@')) address[2] = 0;
  if (connect(descriptor, address, address.length) !== 0) {
    closeSync(descriptor);
    throw new Error(`connect to ${path}: error ${koffi.errno()}`);
  }
  return descriptor;
}
