import { once } from 'node:events';
import { createServer } from 'node:net';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { SystemUser } from '../processes/system-user.ts';
import { makeSocketFolder, removeSocketFolder } from './socket-folder.ts';

/** Where a server is to listen. */
export interface ServerAddress {
  /** Where the hub reaches it. */
  readonly url: string;
  /** Where the server is told to listen; differs for a wildcard address. */
  readonly listenUrl: string;
  /** What `{ip}`, `{port}` and `{socket}` in its command stand for. */
  readonly placeholders: Readonly<Record<string, string>>;
  readonly port: number | undefined;
  readonly socket: { readonly path: string; readonly directory: string } | undefined;
  /** Gives the address back; idempotent, never rejects. */
  release(): Promise<void>;
}

/** Gives out addresses of which no two servers of this hub have the same. */
export interface AddressBook {
  takePort(ip: string): Promise<ServerAddress>;
  takeSocket(runtimeDirectory: string, user: SystemUser | undefined): Promise<ServerAddress>;
  /** Keeps the address of a server that an earlier hub started; returns how to give it back. */
  keep(url: string, socketDirectory: string | undefined): () => Promise<void>;
}

const portAttempts = 20;

/** `onLeftBehind` is told what could not be removed. */
export function createAddressBook(
  onLeftBehind: (folder: string, error: unknown) => void = () => undefined,
): AddressBook {
  const taken = new Set<number>();

  async function removeFolder(folder: string): Promise<void> {
    await removeSocketFolder(folder).catch((thrown: unknown) => onLeftBehind(folder, thrown));
  }

  async function freePort(ip: string): Promise<number> {
    for (let attempt = 0; attempt < portAttempts; attempt += 1) {
      const port = await unusedPort(ip);
      // Given out, but its server has not got round to listening.
      if (taken.has(port)) continue;
      taken.add(port);
      return port;
    }
    throw new HubError('unavailable', text`No free port was found for the server.`);
  }

  return {
    async takePort(ip) {
      const port = await freePort(ip);
      const at = (host: string) => `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
      return {
        url: at(reachableAddress(ip)),
        listenUrl: at(ip),
        placeholders: { ip, port: String(port) },
        port,
        socket: undefined,
        async release() {
          taken.delete(port);
        },
      };
    },

    async takeSocket(runtimeDirectory, user) {
      const { folder: directory, socket: path } = await makeSocketFolder(runtimeDirectory, user);
      const url = `http+unix://${encodeURIComponent(path)}`;
      return {
        url,
        listenUrl: url,
        placeholders: { socket: path },
        port: undefined,
        socket: { path, directory },
        release: () => removeFolder(directory),
      };
    },

    keep(url, socketDirectory) {
      const port = Number(URL.parse(url)?.port);
      if (port > 0) taken.add(port);
      return async () => {
        taken.delete(port);
        if (socketDirectory !== undefined) await removeFolder(socketDirectory);
      };
    },
  };
}

/** Whether a port cannot be listened on any more. */
export async function isPortTaken(ip: string, port: number): Promise<boolean> {
  return listenBriefly(ip, port).then(
    () => false,
    (thrown: unknown) =>
      thrown instanceof Error && 'code' in thrown && thrown.code === 'EADDRINUSE',
  );
}

async function unusedPort(ip: string): Promise<number> {
  try {
    return await listenBriefly(ip, 0);
  } catch (thrown) {
    throw new HubError('unavailable', text`The server cannot listen on ${ip}.`, { cause: thrown });
  }
}

async function listenBriefly(ip: string, port: number): Promise<number> {
  const server = createServer();
  server.listen(port, ip);
  await once(server, 'listening');
  const address = server.address();
  await once(server.close(), 'close');
  return typeof address === 'object' && address !== null ? address.port : port;
}

function reachableAddress(ip: string): string {
  if (ip === '0.0.0.0') return '127.0.0.1';
  return ip === '::' ? '::1' : ip;
}
