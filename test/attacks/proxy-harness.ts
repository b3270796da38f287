import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { pino } from 'pino';
import { proxySection } from '../../src/platform/config/sections-schema.ts';
import type { HubError } from '../../src/platform/errors.ts';
import {
  answerOnSocket,
  errorAnswer,
  toErrorResponse,
  writeAnswer,
} from '../../src/platform/http/answer.ts';
import {
  canonicalPath,
  createClientAddressReader,
} from '../../src/platform/http/request-address.ts';
import { outcomeOf } from '../../src/platform/http/request-log.ts';
import { oneByOne, serveMessages } from '../../src/platform/http/server/serve-messages.ts';
import { createForwarder, type ForwardOptions } from '../../src/traffic/proxy/forwarder.ts';
import { createLiveConnections } from '../../src/traffic/proxy/live-connections.ts';
import { createRouteTable } from '../../src/traffic/proxy/route-table.ts';
import { createWebSocketForwarder } from '../../src/traffic/proxy/websocket-forwarder.ts';

export type ProxyOverrides = Parameters<typeof proxySection.parse>[0] & object;

/** A gateway without a guard: the proxy's parts behind a real server, everybody is `alice`. */
export async function startProxy(
  overrides: ProxyOverrides = {},
  forwardOverrides: Partial<ForwardOptions> = {},
) {
  const config = proxySection.parse(overrides);
  const log = pino({ level: 'silent' });
  const routes = createRouteTable({ reservedPrefixes: ['/hub/'] });
  const liveConnections = createLiveConnections();
  const clientAddress = createClientAddressReader([]);
  const errors: HubError[] = [];
  const closed: { readonly route: string; readonly status: number }[] = [];
  const forwarder = createForwarder({
    config,
    log,
    routes,
    liveConnections,
    onClosed: (req, res, { route }) =>
      void closed.push({ route: route.prefix, status: outcomeOf(req, res).status }),
    answerError(req, res, error) {
      errors.push(error);
      writeAnswer(req, res, errorAnswer(toErrorResponse(error)));
    },
  });
  const webSockets = createWebSocketForwarder({
    config,
    log,
    liveConnections,
    closeGraceMs: 50,
  });

  const find = (req: IncomingMessage) => {
    const path = canonicalPath(req.url ?? '');
    return path === undefined ? ({ kind: 'ambiguous' } as const) : routes.match(path);
  };
  const optionsOf = (req: IncomingMessage) => ({
    client: clientAddress(req),
    headersToAdd: ['X-Hub-User', 'alice'],
    sessionId: String(req.headers['x-test-session'] ?? 'session-1'),
    userName: 'alice',
    ...forwardOverrides,
  });
  function answer(res: ServerResponse, status: number, headers: Record<string, string> = {}) {
    res.writeHead(status, { 'content-length': '0', ...headers });
    res.end();
  }

  const server = createServer({ optimizeEmptyRequests: true });
  serveMessages(server, {
    request: oneByOne((req, res) => {
      const match = find(req);
      if (match === undefined || match.kind === 'nowhere') answer(res, 404);
      else if (match.kind === 'ambiguous') answer(res, 400);
      else if (match.kind === 'redirect') answer(res, 308, { location: match.path });
      else forwarder.forward(req, res, { ...optionsOf(req), route: match.route, path: match.path });
    }),
    upgrade(req, socket, head) {
      const match = find(req);
      if (match?.kind !== 'forward') {
        const status = match === undefined ? 404 : 400;
        answerOnSocket(socket, { status, headers: {}, body: '' });
        return;
      }
      const { route, path } = match;
      webSockets.forward(req, socket, head, { ...optionsOf(req), route, path });
    },
  });
  const port = await listen(server);

  return {
    port,
    server,
    routes,
    forwarder,
    webSockets,
    liveConnections,
    errors,
    /** Requests that are over, with how they ended. */
    closed,
    addService(name: string, target: string, isHop = false) {
      const owner = { kind: 'service', name } as const;
      return routes.add({
        prefix: `/services/${name}/`,
        target,
        access: 'service',
        owner,
        clientId: `service-${name}`,
        isHop,
      });
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await webSockets[Symbol.asyncDispose]();
      await forwarder[Symbol.asyncDispose]();
    },
  };
}

/** A real application behind the proxy. */
export async function startUpstream(
  handler: (req: IncomingMessage, res: ServerResponse) => void | Promise<void>,
  prepare?: (server: Server) => void,
) {
  const server = createServer((req, res) => void handler(req, res));
  prepare?.(server);
  const port = await listen(server);
  return {
    server,
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** An upstream that speaks bytes: what it received stays readable, what it says is up to the test. */
export async function startRawUpstream(
  onConnection: (peer: RawPeer) => void,
  { allowHalfOpen = false } = {},
) {
  const peers: RawPeer[] = [];
  const server = createTcpServer({ allowHalfOpen }, (socket) => {
    const peer = rawPeer(socket);
    peers.push(peer);
    onConnection(peer);
  });
  const port = await listen(server);
  return {
    peers,
    port,
    url: `http://127.0.0.1:${port}`,
    /** Everything received, all connections together. */
    received: () => peers.map((peer) => peer.text()).join(''),
    async [Symbol.asyncDispose]() {
      for (const { socket } of peers) socket.destroy();
      server.close();
    },
  };
}

export type RawPeer = ReturnType<typeof rawPeer>;

/** Wraps a socket for talking in bytes. */
export function rawPeer(socket: Socket) {
  let received = Buffer.alloc(0);
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    socket.emit('more');
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return {
    socket,
    text: () => received.toString('latin1'),
    bytes: () => received,
    closed,
    write: (text: string | Buffer) => socket.write(text as string, 'latin1'),
    /** Resolves when what was received matches; rejects when the connection closes before. */
    async until(pattern: RegExp | string): Promise<string> {
      const matches = () => {
        const text = received.toString('latin1');
        return typeof pattern === 'string' ? text.includes(pattern) : pattern.test(text);
      };
      while (!matches()) {
        if (socket.destroyed) throw new Error(`closed before ${pattern}: ${received.toString()}`);
        await Promise.race([once(socket, 'more'), closed]);
      }
      return received.toString('latin1');
    },
  };
}

/** Opens a connection and sends bytes as they are. */
export async function rawClient(port: number, text = ''): Promise<RawPeer> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: false });
  const peer = rawPeer(socket);
  await once(socket, 'connect');
  if (text !== '') peer.write(text);
  return peer;
}

/** Sends one request with `Connection: close` and returns everything that came back. */
export async function rawRequest(port: number, text: string): Promise<string> {
  const peer = await rawClient(port, text);
  await peer.closed;
  return peer.text();
}

/** Request line and headers with an end; `Host` is added. */
export function head(requestLine: string, ...headers: string[]): string {
  return `${[`${requestLine} HTTP/1.1`, 'Host: hub.test', ...headers].join('\r\n')}\r\n\r\n`;
}

/** Resolves when the condition holds; looks again after every turn of the event loop. */
export async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

export const statusOf = (response: string): number => Number(response.split(' ')[1]);

async function listen(server: {
  listen(port: number, host: string): unknown;
  address(): AddressInfo | string | null;
  once(event: 'listening', listener: () => void): unknown;
}): Promise<number> {
  const listening = new Promise<void>((resolve) => server.once('listening', resolve));
  server.listen(0, '127.0.0.1');
  await listening;
  return (server.address() as AddressInfo).port;
}
