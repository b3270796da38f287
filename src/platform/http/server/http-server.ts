import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { createPeriodic } from '../../concurrency/periodic.ts';
import { TransientSet } from '../../concurrency/transient-set.ts';
import type { ProxyConfig } from '../../config/config.ts';
import type { Secret } from '../../config/secret.ts';
import { HubError } from '../../errors.ts';
import { text } from '../../texts/text.ts';
import { connectionUnder, interceptConnections, responseOn } from '../../undocumented/node-http.ts';
import { answerErrorOnSocket } from '../answer.ts';
import type { ConnectionLimits } from '../connection-limits.ts';
import { markUnixPeer } from '../request-address.ts';
import { recordOf } from '../request-log.ts';
import type { CertificateSource } from '../tls/certificate-source.ts';
import { createTlsEnd } from '../tls/tls-end.ts';
import { createHttp2End } from './http2-end.ts';
import { createCookieSharing, headersTooLarge, oneByOne, serveMessages } from './serve-messages.ts';
import { createSlowClients, createUnreadLimit } from './slow-clients.ts';

/** An HTTP server that answers whatever it refuses, and that no client can make throw. */
export interface HubServer {
  readonly server: Server;
  /** Connections of clients that are open now, those of WebSockets too. */
  readonly openConnections: number;
  /** Where it ends TLS itself: sessions begun here can be resumed at whoever has the secret. */
  shareTickets(secret: Secret): void;
  /**
   * Stops accepting, tells every client that its connection ends, waits for requests in flight up to
   * a deadline, then cuts what is left.
   */
  close(deadlineMs: number, streams?: Streams): Promise<void>;
}

/** What runs until it is ended, and what is still under way at the deadline. */
export interface Streams {
  endStreams(): void;
  cutRest(): void;
}

/** How often requests that take too long are polled for. */
const timeoutCheckMs = 2_000;
/** How often it is looked how much readers leave unread. */
const unreadCheckMs = 1_000;
/** While it stops: how often it polls for connections that are no longer in use. */
const idlePollMs = 50;
/** How long a connection that has not sent anything may still do so when the hub stops. */
const silentGraceMs = 500;
/** How long the last words to clients that were cut may take. */
const cutGraceMs = 500;
const refusalsLoggedEveryMs = 10_000;

/** The caller makes the server listen. Without `upgrade` it takes no WebSockets. */
export function createHubServer(deps: {
  readonly config: Pick<
    ProxyConfig,
    | 'max_header_size'
    | 'headers_timeout'
    | 'request_timeout'
    | 'idle_timeout'
    | 'client_body_timeout'
    | 'client_read_timeout'
    | 'max_unread_size'
  >;
  readonly log: Logger;
  readonly limits?: ConnectionLimits;
  /** With them it ends TLS. */
  readonly certificates?: CertificateSource | undefined;
  /** Whether it then speaks HTTP/2 too. */
  readonly http2?: boolean;
  /** Refusals on their way at once; beyond them a flood is cut without a word. */
  readonly maxRefusals?: number;
  readonly request: (req: IncomingMessage, res: ServerResponse) => void;
  readonly upgrade?: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
  /** Which requests to upgrade it takes; the others are answered as if they asked for nothing of the kind. */
  readonly takesUpgrade?: (req: IncomingMessage) => boolean;
}): HubServer {
  const { config, log, limits, certificates, http2 = false, maxRefusals = 0 } = deps;
  const { request, upgrade, takesUpgrade } = deps;
  const sockets = new TransientSet<Socket>();
  /** Of HTTP/2, and how many of the sockets are streams of theirs. */
  const sessions = new Map<ServerHttp2Session, Socket>();
  let streamCount = 0;
  const takeHttp2 = createHttp2End({
    config,
    accept(stream, isFurther) {
      // The first of a connection is counted with it.
      const error = isFurther ? refusalOf(stream) : undefined;
      if (error !== undefined) return error;
      streamCount += 1;
      sockets.add(stream);
      stream.on('close', forgetStream);
      return undefined;
    },
    serve: (req, res) => void server.emit('request', req, res),
    tooLate(stream) {
      answerClientError({ name: '', message: '', code: 'ERR_HTTP_REQUEST_TIMEOUT' }, stream);
    },
  });
  const shakingHands = new WeakSet<Socket>();
  const shareCookie = createCookieSharing();
  let isClosing = false;

  const server = createServer({
    maxHeaderSize: config.max_header_size,
    headersTimeout: config.headers_timeout * 1000,
    requestTimeout: config.request_timeout * 1000,
    keepAliveTimeout: config.idle_timeout * 1000,
    connectionsCheckingInterval: timeoutCheckMs,
    // Most requests have no body: then there is no stream to set up, drain and tear down.
    optimizeEmptyRequests: true,
  });
  serveMessages(server, {
    request: oneByOne((req, res) => {
      recordOf(req);
      shareCookie(req);
      if (isClosing) res.shouldKeepAlive = false;
      request(req, res);
    }),
    upgrade:
      upgrade &&
      ((req, socket, head) => {
        recordOf(req);
        if (isClosing) answerErrorOnSocket(socket, stopping());
        else upgrade(req, socket, head);
      }),
    takesUpgrade,
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    answerClientError(error, socket as Socket);
  });
  const tlsEnd =
    certificates &&
    createTlsEnd({
      certificates,
      protocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
      established(socket) {
        const under = connectionUnder(socket);
        if (under !== undefined) sockets.delete(under);
        if (socket.alpnProtocol === 'h2') {
          const session = takeHttp2(socket);
          sessions.set(session, socket);
          session.once('close', () => sessions.delete(session));
          if (isClosing) session.close();
        } else {
          track(socket);
          serve(socket);
        }
      },
    });
  const { serve, refusalOf } = acceptWithin(server, {
    limits,
    // One that awaits a handshake understands no answer.
    maxRefusals: tlsEnd === undefined ? maxRefusals : 0,
    log,
    accepted(socket) {
      track(socket);
      if (tlsEnd === undefined) serve(socket);
      else {
        shakingHands.add(socket);
        tlsEnd.receive(socket);
      }
    },
  });

  const slowClients = createSlowClients(config);
  const slowCheck = createPeriodic({
    intervalMs: timeoutCheckMs,
    work() {
      const nowMs = performance.now();
      for (const socket of sockets) {
        const response = responseOn(socket);
        if (response !== undefined) slowClients.check(socket, response, nowMs);
      }
    },
    onError: (error) => log.warn({ err: error }, 'could not check for slow clients'),
  });
  const unreadLimit = createUnreadLimit({ maxBytes: config.max_unread_size, log });
  const unreadCheck = createPeriodic({
    intervalMs: unreadCheckMs,
    work: () => unreadLimit.check(sockets, performance.now()),
    onError: (error) => log.warn({ err: error }, 'could not check for unread answers'),
  });
  server.once('close', () => {
    slowCheck[Symbol.dispose]();
    unreadCheck[Symbol.dispose]();
    tlsEnd?.[Symbol.dispose]();
  });

  function forgetStream(this: Socket): void {
    streamCount -= 1;
    sockets.delete(this);
  }

  function track(socket: Socket): void {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  }

  function closeUnused(isSilentOver: boolean): void {
    server.closeIdleConnections();
    if (!isSilentOver) return;
    for (const socket of sockets) {
      if (socket.bytesRead === 0 || shakingHands.has(socket)) socket.destroy();
    }
  }

  function cut(streams: Streams | undefined): void {
    streams?.cutRest();
    for (const socket of sockets) socket.destroySoon();
    setTimeout(() => {
      // A session that has closed still waits for its client to close too.
      for (const socket of sessions.values()) socket.destroy();
      for (const socket of sockets) socket.destroy();
    }, cutGraceMs).unref();
  }

  return {
    server,
    get openConnections() {
      return sockets.size - streamCount + sessions.size;
    },
    shareTickets: (secret) => tlsEnd?.shareTickets(secret),
    async close(deadlineMs, streams) {
      if (!server.listening) return;
      isClosing = true;
      const startedAtMs = performance.now();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      function endUnused(): void {
        streams?.endStreams();
        closeUnused(performance.now() - startedAtMs > silentGraceMs);
      }
      for (const socket of sockets) tellToClose(socket);
      for (const session of sessions.keys()) session.close();
      endUnused();
      // A connection whose last answer ends only now would be kept alive for the whole idle time.
      const polling = setInterval(endUnused, idlePollMs);
      const timer = setTimeout(() => cut(streams), deadlineMs);
      try {
        await closed;
      } finally {
        clearTimeout(timer);
        clearInterval(polling);
      }
    },
  };
}

/**
 * Refuses connections beyond the limits. `serve` has Node serve one; `refusalOf` counts one, or says why it is too many.
 */
function acceptWithin(
  server: Server,
  options: {
    readonly limits: ConnectionLimits | undefined;
    readonly maxRefusals: number;
    readonly log: Logger;
    readonly accepted: (socket: Socket) => void;
  },
): {
  readonly serve: (socket: Socket) => void;
  readonly refusalOf: (socket: Socket) => HubError | undefined;
} {
  const { limits, maxRefusals, log, accepted } = options;
  let refusals = 0;
  let loggedAtMs = Number.NEGATIVE_INFINITY;

  function refusalOf(socket: Socket): HubError | undefined {
    const error = limits?.accept(socket);
    if (error !== undefined && performance.now() - loggedAtMs > refusalsLoggedEveryMs) {
      loggedAtMs = performance.now();
      log.warn({ address: socket.remoteAddress, code: error.code }, error.message);
    }
    return error;
  }

  function refuse(socket: Socket, error: HubError): void {
    if (refusals >= maxRefusals) {
      socket.destroy();
      return;
    }
    refusals += 1;
    socket.once('close', () => {
      refusals -= 1;
    });
    answerErrorOnSocket(socket, error);
  }

  let isOnSocket = false;
  server.on('listening', () => {
    isOnSocket = typeof server.address() === 'string';
  });
  // Such as too many open files while accepting: one client is lost, not the hub.
  server.on('error', (error) => {
    if (server.listening) log.error({ err: error }, 'connection could not be accepted');
  });
  const serve = interceptConnections(server, (socket) => {
    if (isOnSocket) markUnixPeer(socket);
    const error = refusalOf(socket);
    if (error === undefined) accepted(socket);
    else refuse(socket, error);
  });
  return { serve, refusalOf };
}

/** Answers what Node could not read as a request (RFC 9110 §15.5). */
function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  const current = responseOn(socket);
  // It was refused by its head already.
  if (current?.writableEnded === true) {
    socket.destroySoon();
    return;
  }
  if (!socket.writable || socket.writableEnded || current?.headersSent === true) {
    socket.destroy();
    return;
  }
  answerErrorOnSocket(socket, toHubError(error));
  // Whatever that response still writes must not follow the answer.
  if (current !== undefined) socket.destroySoon();
}

function toHubError({ code }: NodeJS.ErrnoException): HubError {
  switch (code ?? '') {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge();
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new HubError(
        'payload_too_large',
        text`The chunk extensions of the body are too large.`,
      );
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HubError('request_timeout', text`The request did not arrive in time.`);
    default:
      return new HubError('bad_request', text`This is not a valid HTTP request.`);
  }
}

/**
 * Makes the answer under way the last one of its connection: its headers say so if they can, and an
 * event stream of the hub's own ends.
 */
function tellToClose(socket: Socket): void {
  const current = responseOn(socket);
  if (current === undefined) return;
  if (!current.headersSent) {
    current.shouldKeepAlive = false;
  } else if (String(current.getHeader('content-type')).startsWith('text/event-stream')) {
    // Until its writer is told that it has ended.
    current.on('error', ignore);
    current.end();
  }
}

function stopping(): HubError {
  return new HubError('unavailable', text`The hub is stopping.`, { retryAfterSeconds: 5 });
}

function ignore(): void {}
