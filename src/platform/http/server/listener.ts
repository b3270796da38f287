import { once } from 'node:events';
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Server as SocketServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { geteuid } from 'node:process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { isLoopback, portOf } from '../../addresses/host-address.ts';
import { createEventLoopYield } from '../../concurrency/turns.ts';
import { socketPathOf } from '../../config/bind-address.ts';
import { HubError, StartupError } from '../../errors.ts';
import { withPlace } from '../../files/place.ts';
import type { ErrorAnswers } from '../error-answers.ts';
import { canonicalPath, hostProblem } from '../request-address.ts';

/**
 * Listens at a URL such as `http://127.0.0.1:8000/` or `http+unix://%2Frun%2Fhub.sock/`; a socket gets the
 * mode. Where the service manager passed a socket by the last word of the key, listens with that. Throws StartupError
 * when it cannot.
 */
export async function listen(
  server: SocketServer,
  url: string,
  {
    key,
    socketMode = '0600',
    isShared = false,
    passed,
  }: {
    readonly key: string;
    readonly socketMode?: string;
    /** Whether other processes of this account may listen on the same port (`SO_REUSEPORT`). */
    readonly isShared?: boolean;
    readonly passed?: ReadonlyMap<string, number>;
  },
): Promise<void> {
  const path = socketPathOf(url);
  const descriptor = passed?.get(key.split('.').at(-1) ?? '');
  try {
    if (descriptor !== undefined) await listenWithPassed(server, descriptor, url);
    else if (path === undefined) await listenOnPort(server, url, isShared);
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
    EACCES:
      'the hub may not use this port; choose one above 1023 or give it CAP_NET_BIND_SERVICE (AmbientCapabilities= of a systemd unit)',
    EADDRNOTAVAIL: 'this machine has no such address',
  },
  socket: {
    EADDRINUSE: 'something else listens there already; stop it or choose another path',
    // Node says so of both.
    EACCES: 'its folder does not exist, or the hub may not write to it',
    ENOTSOCK: 'a file is there that is not a socket; remove it or choose another path',
  },
};

async function listenOnPort(server: SocketServer, url: string, reusePort: boolean): Promise<void> {
  const target = new URL(url);
  const host = target.hostname.replace(/^\[|\]$/g, '');
  server.listen({ host, port: portOf(target), reusePort });
  await once(server, 'listening');
}

/** What is derived from the setting, such as who may be believed, has to hold for the socket. */
async function listenWithPassed(
  server: SocketServer,
  descriptor: number,
  url: string,
): Promise<void> {
  server.listen({ fd: descriptor });
  await once(server, 'listening');
  const { address, port } = server.address() as Partial<AddressInfo>;
  const target = new URL(url);
  if (
    address === undefined ||
    port !== portOf(target) ||
    isLoopback(address) !== isLoopback(target.hostname)
  ) {
    throw new StartupError(
      `cannot listen at ${url}: the socket of the service manager is at ${address} port ${port}; let ListenStream= say the same`,
    );
  }
}

/** Node removes the socket when the server closes; one of a hub that was killed is in the way. */
async function listenOnSocket(server: SocketServer, path: string, mode: number): Promise<void> {
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

async function bind(server: SocketServer, path: string, mode: number): Promise<void> {
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

/**
 * Answers requests of the hub itself in turns, so that hundreds which arrive together delay neither
 * requests behind the gateway nor health checks.
 */
export function createFairListener(
  answer: (req: IncomingMessage, res: ServerResponse) => Promise<void>,
  /** Paths that are answered at once; they must cost next to nothing. */
  urgentPaths: readonly string[],
  /** Whose new connections come first, those of forwarded requests among them. */
  servers: readonly Server[] = [],
): RequestListener {
  const yieldToEventLoop = createEventLoopYield();
  const untilAllAreIn = createArrivalWait(servers);
  async function answerInTurn(req: IncomingMessage, res: ServerResponse): Promise<void> {
    await untilAllAreIn();
    await yieldToEventLoop();
    await answer(req, res);
  }
  return (req, res) => {
    const isUrgent = urgentPaths.includes(req.url ?? '');
    void (isUrgent ? answer(req, res) : answerInTurn(req, res));
  };
}

/** How long a request waits at most while connections come in. */
const maxWaitMs = 200;

/**
 * Waits while connections come in. Node takes one connection in each turn of the event loop: if answers
 * filled the turns, the last of a crowd would be let in when the first ones have their answers, and a
 * request that is only forwarded would wait with them.
 */
function createArrivalWait(servers: readonly Server[]): () => Promise<void> {
  let accepted = 0;
  let isWatching = false;

  async function watch(): Promise<void> {
    isWatching = true;
    for (let seen = -1; seen !== accepted; ) {
      seen = accepted;
      // From one look at the sockets to after the next.
      await nextTurn();
      await nextTurn();
    }
    isWatching = false;
  }

  for (const server of servers) {
    server.on('connection', () => {
      accepted += 1;
      if (!isWatching) void watch();
    });
  }
  return async () => {
    if (!isWatching) return;
    const sinceMs = performance.now();
    while (isWatching && performance.now() - sinceMs < maxWaitMs) await nextTurn();
  };
}

/**
 * The listener of the internal address: the API, health, readiness and metrics, and nothing for
 * browsers. `/hub/api` without the base path is answered too, since clients have it as a default.
 */
export function createInternalListener(options: {
  readonly answerHub: RequestListener;
  readonly apiPath: string;
  readonly hubPath: string;
  readonly errorAnswers: ErrorAnswers;
}): RequestListener {
  const { answerHub, apiPath, hubPath, errorAnswers } = options;
  const allowed = [apiPath, `${hubPath}health`, `${hubPath}ready`, `${hubPath}metrics`];

  function refuse(req: IncomingMessage, res: ServerResponse, error: HubError): void {
    errorAnswers.respond(req, res, error, { wantsPage: false });
  }

  return (req: IncomingMessage, res: ServerResponse) => {
    const wrongHost = hostProblem(req);
    if (wrongHost !== undefined) {
      refuse(req, res, wrongHost);
      return;
    }
    const path = canonicalPath(req.url ?? '');
    if (path === undefined) {
      refuse(
        req,
        res,
        new HubError('invalid_path', 'This address can be read in more than one way.'),
      );
      return;
    }
    const isShort = hubPath !== '/hub/' && path.pathname.startsWith('/hub/');
    const target = isShort ? hubPath + path.target.slice('/hub/'.length) : path.target;
    const [pathname = ''] = target.split('?', 1);
    if (
      !allowed.some((prefix) => `${pathname}/`.startsWith(prefix) || pathname.startsWith(prefix))
    ) {
      refuse(req, res, new HubError('not_found', 'Only the API is served at this address.'));
      return;
    }
    req.url = target;
    answerHub(req, res);
  };
}
