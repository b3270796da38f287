import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where the web app listens, reachable for this program only as far as the system allows. */
export interface AppAddress extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` or `http+unix://<path>`. */
  readonly url: string;
  readonly port: number | undefined;
  readonly socketPath: string | undefined;
  /** Closes the app's socket to other accounts; called once it is there. */
  protect(): Promise<void>;
}

/** Chooses a TCP port on the loopback interface; a free one when none is given. */
export async function choosePort(port?: number): Promise<AppAddress> {
  const chosen = port ?? (await findFreePort());
  return {
    url: `http://127.0.0.1:${chosen}`,
    port: chosen,
    socketPath: undefined,
    protect: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/** Chooses a Unix socket in a new directory that other accounts cannot enter. */
export async function chooseSocket(): Promise<AppAddress> {
  // mkdtemp gives mode 0700.
  const directory = await mkdtemp(join(tmpdir(), 'hub-app-'));
  const socketPath = join(directory, 'app.sock');
  return {
    url: `http+unix://${encodeURIComponent(socketPath)}`,
    port: undefined,
    socketPath,
    protect: () => chmod(socketPath, 0o600),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}

const drawAttempts = 50;

/**
 * A port above those that the system gives to connections and to whoever asks it for any: one of these could be given
 * to another program before the app listens. Where there are no such ports, it is one that the system gives.
 */
async function findFreePort(): Promise<number> {
  const from = (await lastGivenPort()) + 1;
  for (let attempt = 0; from + drawAttempts < portsEnd && attempt < drawAttempts; attempt += 1) {
    const port = await tryPort(randomInt(from, portsEnd));
    if (port !== undefined) return port;
  }
  const port = await tryPort(0);
  if (port === undefined) throw new Error('no port is free for the app');
  return port;
}

const portsEnd = 65_536;

async function lastGivenPort(): Promise<number> {
  const range = await readFile('/proc/sys/net/ipv4/ip_local_port_range', 'latin1').catch(() => '');
  return Number(/^\d+\s+(\d+)/.exec(range)?.[1] ?? portsEnd);
}

/** Undefined when another program has it. */
async function tryPort(wanted: number): Promise<number | undefined> {
  const server = createServer().listen(wanted, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return undefined;
  }
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
