import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
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

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
