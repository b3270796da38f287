import { readdirSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { platform } from 'node:os';

/** A program's socket that waits for connections. */
export interface PortListener {
  /** Account of the program. */
  readonly userId: number;
  /** Identifies the socket on this machine. */
  readonly socketId: string;
}

/**
 * Finds who listens on a TCP port of this machine, on any address; empty when no process does.
 * Undefined where the system does not tell (anything but Linux).
 */
export async function findListeners(port: number): Promise<readonly PortListener[] | undefined> {
  const listeners = await listListeners();
  return listeners && (listeners.get(port) ?? []);
}

/** Lists who listens on which TCP port; undefined where the system does not tell. */
export async function listListeners(): Promise<
  ReadonlyMap<number, readonly PortListener[]> | undefined
> {
  if (platform() !== 'linux') return undefined;
  const found = new Map<number, PortListener[]>();
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    // A busy machine has thousands of connections in this table and few listeners.
    for (const [, port = '', userId, socketId = ''] of (await readTable(file)).matchAll(
      listeningLine,
    )) {
      const listener = { userId: Number(userId), socketId };
      const number = Number.parseInt(port, 16);
      const others = found.get(number);
      if (others === undefined) found.set(number, [listener]);
      else others.push(listener);
    }
  }
  return found;
}

/** Whether a process holds any socket at all: cheap to tell, and without one it listens nowhere. */
export function holdsAnySocket(pid: number): boolean {
  return descriptorsOf(pid).some((link) => link.startsWith('socket:'));
}

/** Whether one of the processes holds one of the sockets. Linux only. */
export function holdsSocket(pids: readonly number[], listeners: readonly PortListener[]): boolean {
  const links = new Set(listeners.map(({ socketId }) => `socket:[${socketId}]`));
  return pids.some((pid) => descriptorsOf(pid).some((link) => links.has(link)));
}

/** Local address and port, remote ones, the state LISTEN, three columns, account, timeout, socket. */
const listeningLine =
  /^ *\d+: [\dA-F]+:([\dA-F]{4}) [\dA-F]+:[\dA-F]{4} 0A \S+ \S+ \S+ +(\d+) +\d+ (\d+)/gm;

async function readTable(file: string): Promise<string> {
  // In the thread pool: the kernel takes tens of milliseconds for this table where memory is large.
  // A machine without IPv6 has no tcp6.
  return readFile(file, 'latin1').catch(() => '');
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
