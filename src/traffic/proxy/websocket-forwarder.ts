import { type ClientRequestArgs, Agent as HttpAgent, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ProxyServer, type ServerOptions } from 'http-proxy-3';
import type { Logger } from 'pino';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import type { ProxyConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { answerErrorOnSocket } from '../../platform/http/answer.ts';
import { noteReader, recordOf } from '../../platform/http/request-log.ts';
import type { FindIdentity } from '../../platform/internal-tls/internal-authority.ts';
import { withoutTokenParameter } from '../../platform/protocol/token-parameter.ts';
import { message, type Text, text } from '../../platform/texts/text.ts';
import { connectUnix } from '../../spawning/processes/unix-connection.ts';
import type { ForwardOptions } from './forwarder.ts';
import type { LiveConnections } from './live-connections.ts';
import { toHeaderObject, upstreamRequestHeaders } from './request-headers.ts';
import type { Route } from './route.ts';
import { notReadyError, toUpstreamError } from './upstream-error.ts';
import { type TunnelHost, WebSocketTunnel } from './websocket-tunnel.ts';

/** Forwards WebSockets. */
export interface WebSocketForwarder extends AsyncDisposable {
  /** Takes over an opening handshake (RFC 6455 §4.2.1) that is allowed to pass. */
  forward(
    req: IncomingMessage,
    socket: Socket,
    head: Buffer,
    options: Omit<ForwardOptions, 'responseHeadersToAdd'>,
  ): void;
  /** Brings `Route.lastActivityMs` up to date and closes what has been idle too long. */
  recordTraffic(): void;
  readonly openWebSockets: number;
}

/** What the forwarder needs of the configuration. */
export type WebSocketOptions = Pick<
  ProxyConfig,
  'connect_timeout' | 'upstream_timeout' | 'max_websockets_per_user' | 'websocket_idle_timeout'
>;

/** An application may start a kernel before it answers a handshake. */
const defaultHandshakeTimeoutMs = 120_000;
const trafficIntervalMs = 10_000;

class PlainAgent extends HttpAgent {
  override createConnection(
    options: ClientRequestArgs,
    onCreated?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const { socketPath } = options;
    return socketPath ? connectUnix(socketPath) : super.createConnection(options, onCreated);
  }
}

export function createWebSocketForwarder(options: {
  readonly config: WebSocketOptions;
  readonly log: Logger;
  readonly liveConnections: LiveConnections;
  /** Makes connections to upstreams without TLS. */
  readonly httpAgent?: HttpAgent;
  /** What upstreams with TLS are shown and checked by, in place of what holds for everybody. */
  readonly identity?: FindIdentity | undefined;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
  /** How long one side of a WebSocket may take to close after the other has. */
  readonly closeGraceMs?: number;
}): WebSocketForwarder {
  const { config, log, liveConnections, closeGraceMs = 5_000 } = options;
  const { now = () => performance.now() } = options;
  const tunnels = new Set<WebSocketTunnel>();
  const connecting = new WeakMap<IncomingMessage, WebSocketTunnel>();
  const opening = new WeakMap<Socket, WebSocketTunnel>();
  const countByUser = new Map<string, number>();
  const { httpAgent = new PlainAgent() } = options;
  const agents = { 'http:': httpAgent, 'https:': new HttpsAgent() };

  const proxy = new ProxyServer({ prependPath: false, toProxy: true });
  // Every failure also reaches the callback of its own tunnel; without a listener it would be thrown.
  proxy.on('error', () => {});
  proxy.on('proxyReqWs', (proxyRequest, req) => connecting.get(req)?.connecting(proxyRequest));
  proxy.on('open', (upstream) => opening.get(upstream)?.opened());

  function changeCount(userName: string | undefined, change: 1 | -1): void {
    if (userName === undefined) return;
    const count = (countByUser.get(userName) ?? 0) + change;
    if (count === 0) countByUser.delete(userName);
    else countByUser.set(userName, count);
  }

  function closed(tunnel: WebSocketTunnel): void {
    tunnel.recordTraffic();
    tunnels.delete(tunnel);
    liveConnections.delete(tunnel);
    tunnel.tags.route.load.openWebSockets -= 1;
    changeCount(tunnel.tags.userName, -1);
  }

  function failed({ tags, requestId }: WebSocketTunnel, error: unknown): void {
    log.warn({ requestId, route: tags.route.prefix, err: error }, 'upstream refused WebSocket');
  }

  function hostOf({ upstreamTimeoutMs }: Route): TunnelHost {
    const timeoutMs = upstreamTimeoutMs ?? config.upstream_timeout * 1000;
    const handshakeTimeoutMs = timeoutMs > 0 ? timeoutMs : defaultHandshakeTimeoutMs;
    const upgraded = (tunnel: WebSocketTunnel, upstream: Socket) =>
      void opening.set(upstream, tunnel);
    return { handshakeTimeoutMs, closeGraceMs, upgraded, closed, failed, now };
  }

  function recordTraffic(): void {
    for (const tunnel of tunnels) {
      const idleMs = tunnel.recordTraffic();
      const limit = tunnel.tags.route.limits?.idle_timeout ?? config.websocket_idle_timeout;
      if (limit > 0 && idleMs >= limit * 1000) tunnel.closeIdle();
    }
  }

  function refusalOf(route: Route, userName: string | undefined): HubError | undefined {
    if (!route.isReady) return notReadyError();
    const limit = config.max_websockets_per_user;
    if (limit > 0 && userName !== undefined && (countByUser.get(userName) ?? 0) >= limit) {
      return new HubError('too_many_requests', tooMany(limit), {
        hint: text`Close tabs that you do not need.`,
        retryAfterSeconds: 10,
      });
    }
    return undefined;
  }

  const recording = createPeriodic({
    intervalMs: trafficIntervalMs,
    work: recordTraffic,
    onError: (error) => log.warn({ err: error }, 'could not record the traffic of WebSockets'),
  });

  return {
    forward(req, socket, head, forwardOptions) {
      // The server's own listener is gone since the upgrade; a socket without one throws.
      socket.on('error', () => {});
      if (socket.destroyed) return;
      const { route, path, client, userName, sessionId, accessTokenId, expiresAtMs, groups } =
        forwardOptions;
      noteReader(socket, { userName, address: client.address });
      const { stripAuthorization } = forwardOptions;
      const headers = refusalOf(route, userName) ?? handshakeHeaders(req, forwardOptions);
      if (headers instanceof HubError) {
        answerErrorOnSocket(socket, headers, recordOf(req).id);
        return;
      }
      route.lastActivityMs = now();
      const tunnel = new WebSocketTunnel({
        socket,
        clientKey: req.headers['sec-websocket-key'] ?? '',
        requestId: recordOf(req).id,
        tags: { route, client, userName, sessionId, accessTokenId, expiresAtMs, groups },
        host: hostOf(route),
      });
      tunnels.add(tunnel);
      liveConnections.add(tunnel);
      route.load.openWebSockets += 1;
      changeCount(userName, 1);

      connecting.set(req, tunnel);
      // As middleware does before it hands a request on: the package sends what the request says by then.
      req.url = stripAuthorization === true ? withoutTokenParameter(path) : path;
      req.headers = headers;
      proxy.ws(
        req,
        socket,
        head,
        targetOptions(route, {
          agent: agents[route.upstream.protocol],
          config,
          identity: options.identity,
        }),
        (error) => tunnel.upstreamFailed(error),
      );
    },
    recordTraffic,
    get openWebSockets() {
      return tunnels.size;
    },
    async [Symbol.asyncDispose]() {
      recording[Symbol.dispose]();
      for (const tunnel of tunnels) tunnel.close('shutting_down');
      agents['http:'].destroy();
      agents['https:'].destroy();
    },
  };
}

function handshakeHeaders(
  req: IncomingMessage,
  options: Omit<ForwardOptions, 'responseHeadersToAdd'>,
): Record<string, string | string[]> | HubError {
  const { route, client, headersToAdd = [], stripAuthorization = false } = options;
  const { rawHeaders } = req;
  const { id, trace } = recordOf(req);
  try {
    const pairs = upstreamRequestHeaders({
      rawHeaders,
      route,
      client,
      requestId: id,
      traceHeaders: trace?.forwarding(),
      headersToAdd,
      stripAuthorization,
    });
    return { ...toHeaderObject(pairs), connection: 'Upgrade', upgrade: 'websocket' };
  } catch (error) {
    return toUpstreamError(error);
  }
}

function targetOptions(
  { upstream }: Route,
  {
    agent,
    config,
    identity,
  }: {
    agent: HttpAgent | HttpsAgent;
    config: WebSocketOptions;
    identity: FindIdentity | undefined;
  },
): ServerOptions {
  const { hostname, port, protocol, servername, socketPath } = upstream;
  return {
    target: {
      host: hostname,
      hostname,
      port,
      protocol,
      ...identity?.(),
      ...(socketPath === undefined ? {} : { socketPath }),
    },
    agent,
    connectTimeout: config.connect_timeout * 1000,
    // A new object each time: http-proxy-3 fills it in. Otherwise the name would follow the Host header.
    ...(protocol === 'https:' ? { ssl: { servername } } : {}),
  };
}

function tooMany(limit: number): Text {
  return message(
    '{limit, plural, one {You have # WebSocket open already.} other {You have # WebSockets open already.}}',
    { limit },
  );
}
