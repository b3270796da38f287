import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ProxyConfig } from '../../config/config.ts';
import type { HubError } from '../../errors.ts';
import { retryAfterHeader, toErrorResponse } from '../answer.ts';
import { copyCertificate } from '../request-address.ts';
import { connectionHeaders, createExchange, StreamSocket } from './http2-exchange.ts';

const maxStreams = 128;
/** Resets of streams that are borne at once, and each second from then on (CVE-2023-44487). */
const resets = { streamResetBurst: 200, streamResetRate: 20 };
/** Headers that stand twice in an answer are the app's affair, as in HTTP/1.1. */
const answers = { strictSingleValueFields: false };
const maxSettings = 16;
/** How long a client may take to close its side of a connection that has ended. */
const lastWordsMs = 1_000;
const maxHeaderFields = 256;
/** What a request of HTTP/1.1 is given again, or does without. */
const replacedHeaders = new Set([...connectionHeaders, 'host', 'cookie', 'expect']);

/**
 * Serves HTTP/2 (RFC 9113) to browsers: each stream becomes a request with the headers that it would have in HTTP/1.1, so
 * that every rule for requests is there once. WebSockets are not offered (RFC 8441), which has browsers open them by
 * HTTP/1.1.
 */
export function createHttp2End({
  config,
  accept,
  serve,
  tooLate,
}: {
  readonly config: Pick<ProxyConfig, 'max_header_size' | 'idle_timeout' | 'request_timeout'>;
  /** Says why a stream is refused; `isFurther`, where the client has others on its connection. */
  readonly accept: (stream: Socket, isFurther: boolean) => HubError | undefined;
  readonly serve: (req: IncomingMessage, res: ServerResponse) => void;
  /** Answers a request that is not whole in time. */
  readonly tooLate: (stream: Socket) => void;
}): (socket: TLSSocket) => ServerHttp2Session {
  function take(
    stream: ServerHttp2Stream,
    request: {
      readonly socket: TLSSocket;
      readonly target: Target;
      readonly rawHeaders: readonly string[];
      readonly isFurther: boolean;
    },
  ): void {
    const { socket, target, rawHeaders, isFurther } = request;
    const connection = new StreamSocket(stream, socket);
    const error = accept(connection.asSocket, isFurther);
    if (error !== undefined) {
      const refusal = toErrorResponse(error);
      refuse(stream, refusal.status, retryAfterHeader(refusal));
      return;
    }
    copyCertificate(socket, connection.asSocket);
    const { method, path } = target;
    const head = { method, path, headers: headersOf(stream, target, rawHeaders) };
    const { req, res } = createExchange(stream, connection, head);
    if (!req.complete && config.request_timeout > 0) {
      const timer = setTimeout(() => {
        if (!req.complete) tooLate(connection.asSocket);
      }, config.request_timeout * 1000).unref();
      stream.once('close', () => clearTimeout(timer));
    }
    serve(req, res);
  }

  const idleMs = config.idle_timeout * 1000;
  return (socket) => {
    const session = performServerHandshake(socket, {
      ...resets,
      ...answers,
      maxSettings,
      maxHeaderListPairs: maxHeaderFields,
      settings: {
        enablePush: false,
        maxConcurrentStreams: maxStreams,
        maxHeaderListSize: config.max_header_size,
      },
    });
    let open = 0;
    let unusedSinceMs = performance.now();
    const closed = () => {
      open -= 1;
      if (open === 0) unusedSinceMs = performance.now();
    };
    // Whatever a client does to its session ends it, and nothing else.
    session.on('error', ignore);
    // Node would start a timer of the session again several times for each request.
    function endUnused(): void {
      const leftMs = open > 0 ? idleMs : unusedSinceMs + idleMs - performance.now();
      if (leftMs > 0) {
        timer = setTimeout(endUnused, Math.ceil(leftMs)).unref();
        return;
      }
      session.close();
      timer = setTimeout(() => socket.destroy(), lastWordsMs).unref();
    }
    let timer = idleMs > 0 ? setTimeout(endUnused, idleMs).unref() : undefined;
    session.once('close', () => clearTimeout(timer));
    session.on('stream', (stream, headers, _flags, rawHeaders) => {
      open += 1;
      stream.on('error', ignore).on('close', closed);
      const target = targetOf(headers);
      if (target === undefined) refuse(stream, 400);
      else if (target.method === 'CONNECT') refuse(stream, 405);
      else take(stream, { socket, target, rawHeaders, isFurther: open > 1 });
    });
    return session;
  };
}

const methods: ReadonlySet<string> = new Set(METHODS);
/** Bytes above ASCII are none of RFC 9113 §8.3.1, but browsers send them. */
const validPath = /^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/;

interface Target {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly cookie: string | undefined;
}

/** Undefined where a request could mean two things: RFC 9113 §8.3.1. */
function targetOf(headers: IncomingHttpHeaders): Target | undefined {
  const { ':method': method, ':path': path = '', ':authority': authority, host, cookie } = headers;
  if (method === undefined || !methods.has(method)) return undefined;
  if (method !== 'CONNECT' && !validPath.test(path)) return undefined;
  if (authority !== undefined && host !== undefined && authority !== host) return undefined;
  return { method, path, host: authority ?? host ?? '', cookie };
}

function refuse(
  stream: ServerHttp2Stream,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  stream.respond({ ':status': status, ...headers }, { endStream: true });
  stream.close(constants.NGHTTP2_NO_ERROR);
}

/** What HTTP/1.1 would say of the same request: what is forwarded is judged by that. */
function headersOf(
  stream: ServerHttp2Stream,
  { host, cookie }: Target,
  rawHeaders: readonly string[],
): string[] {
  // Of HTTP/2 clients each reads trailers (RFC 9113 §8.1).
  const headers = ['host', host, 'te', 'trailers'];
  if (cookie !== undefined) headers.push('cookie', cookie);
  let hasLength = false;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.startsWith(':') || replacedHeaders.has(name)) continue;
    if (name === 'content-length') hasLength = true;
    headers.push(name, rawHeaders[index + 1] ?? '');
  }
  if (!stream.endAfterHeaders && !hasLength) headers.push('transfer-encoding', 'chunked');
  return headers;
}

function ignore(): void {}
