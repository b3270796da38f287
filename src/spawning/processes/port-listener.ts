import { readdirSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { networkInterfaces, platform } from 'node:os';
import {
  isLoopback,
  isUnspecified,
  plainHost,
  portOf,
} from '../../platform/addresses/host-address.ts';

/** A program's socket that waits for connections. */
export interface PortListener {
  /** Address it listens on, as the system writes it: 32-bit words in hexadecimal, all zero for any. */
  readonly address: string;
  readonly port: number;
  /** Account of the program. */
  readonly userId: number;
  /** Identifies the socket on this machine. */
  readonly socketId: string;
}

/**
 * Finds who listens on a TCP port of this machine, on any address; empty when no process does.
 * Undefined where the system does not tell (anything but Linux, and sandboxes without these tables).
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
  const tables = [await readTable('/proc/net/tcp'), await readTable('/proc/net/tcp6')];
  // A sandbox may have neither.
  if (tables.every((table) => table === '')) return undefined;
  for (const table of tables) {
    // A busy machine has thousands of connections in this table and few listeners.
    for (const [, address = '', portText = '', userId, socketId = ''] of table.matchAll(
      listeningLine,
    )) {
      const port = Number.parseInt(portText, 16);
      const listener = { address, port, userId: Number(userId), socketId };
      const others = found.get(port);
      if (others === undefined) found.set(port, [listener]);
      else others.push(listener);
    }
  }
  return found;
}

/**
 * Finds who gets the connections to a URL of this machine: of those who listen on its port the ones on the
 * very address, else those on every address. Empty for a URL elsewhere; undefined where the system does not
 * tell.
 */
export async function listenersFor(
  url: string,
  listenersOn: (port: number) => Promise<readonly PortListener[] | undefined> = findListeners,
): Promise<readonly PortListener[] | undefined> {
  if (!isOnThisMachine(url)) return [];
  const { hostname, ...address } = read(url);
  const addresses = localAddresses(hostname);
  const all = await listenersOn(address.port);
  return (
    all &&
    addresses.flatMap((candidates) => {
      const [first] = candidates.flatMap((address) => {
        const listeners = all.filter((listener) => listener.address === address);
        return listeners.length > 0 ? [listeners] : [];
      });
      return first ?? [];
    })
  );
}

/** Whether a URL leads to a TCP port of this machine. */
export function isOnThisMachine(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return /^https?:$/.test(protocol) && localAddresses(hostname).length > 0;
}

/** Whether what is sent to a URL arrives at a listener of this machine: it may be on every address. */
export function leadsTo(url: string, listenUrl: string): boolean {
  const [target, listener] = [read(url), read(listenUrl)];
  if (target.port !== listener.port) return false;
  if (listenKey(url) === listenKey(listenUrl)) return true;
  return isUnspecified(listener.hostname) && isOnThisMachine(url);
}

/** Host and port in one spelling, so that two names of the loopback address are seen as one. */
export function listenKey(url: string): string {
  const { hostname, port } = read(url);
  const host = plainHost(hostname);
  const isUsual = isLocalName(host) || host === '127.0.0.1' || host === '::1';
  return `${isUsual || isUnspecified(host) ? 'local' : host}:${port}`;
}

const anyOfIpv4 = '0'.repeat(8);
const anyOfIpv6 = '0'.repeat(32);
const loopbackOfIpv6 = `${'0'.repeat(24)}01000000`;

/** For each address that a host name of this machine may mean: where to listen for it, the closest first. */
function localAddresses(hostname: string): readonly (readonly string[])[] {
  const ipv6 = [loopbackOfIpv6, anyOfIpv6];
  const host = plainHost(hostname);
  if (host === '::1' || host === '::') return [ipv6];
  const isName = isLocalName(host);
  const text = isName || host === '0.0.0.0' ? '127.0.0.1' : host;
  if (isIP(text) !== 4 || !(isLoopback(text) || isOwnAddress(text))) return [];
  const bytes = text.split('.').map((part) => Number(part).toString(16).padStart(2, '0'));
  const address = bytes.toReversed().join('').toUpperCase();
  const mapped = `${'0'.repeat(16)}FFFF0000${address}`;
  const ipv4 = [address, mapped, anyOfIpv4, anyOfIpv6];
  return isName ? [ipv4, ipv6] : [ipv4];
}

/** RFC 6761 §6.3. */
function isLocalName(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost');
}

function read(url: string): { readonly hostname: string; readonly port: number } {
  const parsed = new URL(url);
  return { hostname: parsed.hostname, port: portOf(parsed) };
}

function isOwnAddress(text: string): boolean {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return interfaces.some(({ address }) => address === text);
}

/** Whether a process holds any socket at all: cheap to tell, and without one it listens nowhere. */
export function holdsAnySocket(pid: number): boolean {
  return (descriptorsOf(pid) ?? []).some((link) => link.startsWith('socket:'));
}

/** A descriptor of a process, and what it pointed to. */
export interface HeldDescriptor {
  readonly path: string;
  readonly link: string;
}

/** The descriptor by which one of the processes holds a socket; undefined where none is seen. Linux only. */
export function findDescriptor(
  pids: readonly number[],
  { socketId }: PortListener,
): HeldDescriptor | undefined {
  const link = socketLink(socketId);
  for (const pid of pids) {
    const path = descriptorPathsOf(pid)?.find((each) => linkTarget(each)[0] === link);
    if (path !== undefined) return { path, link };
  }
  return undefined;
}

/** Whether a descriptor still is what it was: costs reading one link. */
export function isStillHeld({ path, link }: HeldDescriptor): boolean {
  return linkTarget(path)[0] === link;
}

/** Local address and port, remote ones, the state LISTEN, three columns, account, timeout, socket. */
const listeningLine =
  /^ *\d+: ([\dA-F]+):([\dA-F]{4}) [\dA-F]+:[\dA-F]{4} 0A \S+ \S+ \S+ +(\d+) +\d+ (\d+)/gm;

async function readTable(file: string): Promise<string> {
  // In the thread pool: the kernel takes tens of milliseconds for this table where memory is large.
  // A machine without IPv6 has no tcp6.
  return readFile(file, 'latin1').catch(() => '');
}

/** What the descriptor of a socket points to. */
export function socketLink(socketId: string): string {
  return `socket:[${socketId}]`;
}

/** What the descriptors of a process point to; undefined when the hub may not see, or it is gone. */
export function descriptorsOf(pid: number): readonly string[] | undefined {
  return descriptorPathsOf(pid)?.flatMap(linkTarget);
}

function descriptorPathsOf(pid: number): readonly string[] | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  } catch {
    return undefined;
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
