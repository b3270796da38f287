import { once } from 'node:events';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:http';
import { connect } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { geteuid } from 'node:process';
import { socketPathOf } from '../../config/bind-address.ts';
import { StartupError } from '../../errors.ts';
import { withPlace } from '../../files/place.ts';

/**
 * Listens at a URL such as `http://127.0.0.1:8000/` or `http+unix://%2Frun%2Fhub.sock/`; a socket gets the
 * mode. Throws StartupError when it cannot.
 */
export async function listen(
  server: Server,
  url: string,
  {
    key,
    socketMode = '0600',
    isShared = false,
  }: {
    readonly key: string;
    readonly socketMode?: string;
    /** Whether other processes of this account may listen on the same port (`SO_REUSEPORT`). */
    readonly isShared?: boolean;
  },
): Promise<void> {
  const path = socketPathOf(url);
  try {
    if (path === undefined) await listenOnPort(server, url, isShared);
    else await listenOnSocket(server, path, Number.parseInt(socketMode, 8));
  } catch (error) {
    if (error instanceof StartupError) throw error;
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = (path === undefined ? reasons.port : reasons.socket)[code] ?? String(error);
    throw new StartupError(`cannot listen at ${path ?? url} (${key}): ${reason}`, { cause: error });
  }
}

const reasons: Readonly<Record<'port' | 'socket', Readonly<Record<string, string>>>> = {
  port: {
    EADDRINUSE: 'something else listens there already; stop it or choose another port',
    EACCES: 'the hub may not use this port; choose one above 1023 or start it with more rights',
    EADDRNOTAVAIL: 'this machine has no such address',
  },
  socket: {
    EADDRINUSE: 'something else listens there already; stop it or choose another path',
    // Node says so of both.
    EACCES: 'its folder does not exist, or the hub may not write to it',
    ENOTSOCK: 'a file is there that is not a socket; remove it or choose another path',
  },
};

async function listenOnPort(server: Server, url: string, reusePort: boolean): Promise<void> {
  const { hostname, port } = new URL(url);
  server.listen({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 80 : Number(port),
    reusePort,
  });
  await once(server, 'listening');
}

/** Node removes the socket when the server closes; one of a hub that was killed is in the way. */
async function listenOnSocket(server: Server, path: string, mode: number): Promise<void> {
  try {
    await bind(server, path, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    if (await isListenedOn(path)) throw error;
    // Of a folder of another account, which could turn it into a link.
    withPlace(dirname(path), 'folder', (folder) => {
      const stale = join(folder, basename(path));
      if (!lstatSync(stale).isSocket()) throw Object.assign(new Error(path), { code: 'ENOTSOCK' });
      unlinkSync(stale);
    });
    await bind(server, path, mode);
  }
}

async function bind(server: Server, path: string, mode: number): Promise<void> {
  const listening = once(server, 'listening');
  // The socket is there when this returns, and its mode is right before anyone is answered.
  server.listen({ path });
  if (server.listening) {
    withPlace(path, 'any', (place, stats) => {
      if (stats.isSocket() && stats.uid === geteuid?.()) chmodSync(place, mode);
    });
  }
  await listening;
}

function isListenedOn(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  socket.once('connect', () => resolve(true));
  // One that this account may not open is listened on too.
  socket.once('error', ({ code }: NodeJS.ErrnoException) =>
    resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT'),
  );
  return promise.finally(() => socket.destroy());
}
