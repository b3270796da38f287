import { type ClientRequest, type IncomingMessage, request } from 'node:http';
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
import { connectWithin } from './inner-connection.ts';

const maxStreams = 128;
/** Resets of streams that are borne at once, and each second from then on (CVE-2023-44487). */
const resets = { streamResetBurst: 200, streamResetRate: 20 };
const maxSettings = 16;
/** How long a client may take to close its side of a connection that has ended. */
const lastWordsMs = 1_000;
const maxHeaderFields = 256;
/** Of answers: those of apps were let through already. */
const maxAnswerHeaderBytes = 1024 * 1024;
/** Of one connection, without a meaning in HTTP/2 (RFC 9113 §8.2.2). */
const connectionHeaders = new Set(
  'connection http2-settings keep-alive proxy-connection te transfer-encoding upgrade'.split(' '),
);
/** What a request of HTTP/1.1 is given again, or does without. */
const replacedHeaders = new Set([...connectionHeaders, 'host', 'cookie', 'expect']);

/**
 * Serves HTTP/2 (RFC 9113) to browsers by a server of HTTP/1.1: each stream becomes a connection within the process, so
 * that every rule for requests is there once, and what is forwarded has passed the same parser. WebSockets are not
 * offered (RFC 8441), which has browsers open them by HTTP/1.1. `serve` gets the connections of the streams, and says why
 * one is refused; `isFurther`, where the client has others on the connection under it.
 */
export function createHttp2End({
  config,
  serve,
}: {
  readonly config: Pick<ProxyConfig, 'max_header_size' | 'idle_timeout' | 'client_read_timeout'>;
  readonly serve: (socket: Socket, isFurther: boolean) => HubError | undefined;
}): (socket: TLSSocket) => ServerHttp2Session {
  return (socket) => {
    const session = performServerHandshake(socket, {
      ...resets,
      maxSettings,
      maxHeaderListPairs: maxHeaderFields,
      settings: {
        enablePush: false,
        maxConcurrentStreams: maxStreams,
        maxHeaderListSize: config.max_header_size,
      },
    });
    const open = new Set<ServerHttp2Stream>();
    // Whatever a client does to its session ends it, and nothing else.
    session.on('error', ignore);
    onSilence(session, config.idle_timeout, () => {
      if (open.size > 0) return;
      session.close();
      setTimeout(() => socket.destroy(), lastWordsMs).unref();
    });
    session.on('stream', (stream, headers, _flags, rawHeaders) => {
      open.add(stream);
      stream.on('error', ignore);
      stream.once('close', () => open.delete(stream));
      // Of a short answer, the connection within the process is over, and nobody else sees that it is not taken.
      onSilence(stream, config.client_read_timeout, () => {
        if (stream.writableLength > 0) stream.destroy(new Error('the client takes nothing'));
      });
      const target = targetOf(headers);
      if (target === undefined) refuse(stream, 400);
      else if (headers[':method'] === 'CONNECT') refuse(stream, 405);
      else {
        const { client, server } = connectWithin(socket);
        copyCertificate(socket, server);
        const error = serve(server, open.size > 1);
        if (error === undefined) bridge(stream, client, target, rawHeaders);
        else {
          const refusal = toErrorResponse(error);
          refuse(stream, refusal.status, retryAfterHeader(refusal));
        }
      }
    });
    return session;
  };
}

/** Calls back each time that nothing has come or gone for so long; 0 for never. */
function onSilence(of: ServerHttp2Session | ServerHttp2Stream, seconds: number, then: () => void) {
  of.setTimeout(seconds * 1000, () => {
    then();
    // Node calls once.
    onSilence(of, seconds, then);
  });
}

interface Target {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly cookie: string | undefined;
}

/** Undefined where a request could mean two things: RFC 9113 §8.3.1. */
function targetOf(headers: IncomingHttpHeaders): Target | undefined {
  const { ':method': method, ':path': path = '', ':authority': authority, host, cookie } = headers;
  if (method === undefined || (method !== 'CONNECT' && !/^(?:\/|\*$)/.test(path))) return undefined;
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

/** Sends what a stream asks for on a connection of HTTP/1.1, and the answer back. */
function bridge(
  stream: ServerHttp2Stream,
  connection: Socket,
  { method, path, host, cookie }: Target,
  rawHeaders: readonly string[],
): void {
  const headers = ['host', host, 'connection', 'close'];
  if (cookie !== undefined) headers.push('cookie', cookie);
  let hasLength = false;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    if (name.startsWith(':') || replacedHeaders.has(name)) continue;
    if (name === 'content-length') hasLength = true;
    headers.push(name, rawHeaders[index + 1] ?? '');
  }
  const hasBody = !stream.endAfterHeaders;
  if (hasBody && !hasLength) headers.push('transfer-encoding', 'chunked');
  let sent: ClientRequest;
  try {
    sent = request({
      createConnection: () => connection,
      maxHeaderSize: maxAnswerHeaderBytes,
      method,
      path,
      headers,
      setHost: false,
    });
  } catch {
    // A method or value that HTTP/1.1 does not have.
    connection.destroy();
    refuse(stream, 400);
    return;
  }
  sent.on('information', ({ statusCode: status, headers: { link } }) => {
    if (status === 103 && !stream.destroyed) stream.additionalHeaders({ ':status': status, link });
  });
  sent.once('response', (answer) => respond(stream, answer, method));
  sent.on('error', (error) => {
    // The answer may be whole, and only the rest of the body not wanted.
    if (!stream.writableEnded) stream.destroy(error);
  });
  stream.once('close', () => sent.destroy());
  if (hasBody) stream.pipe(sent);
  else sent.end();
}

function respond(stream: ServerHttp2Stream, answer: IncomingMessage, method: string): void {
  if (stream.destroyed) {
    answer.destroy();
    return;
  }
  const { statusCode: status = 502, headers } = answer;
  const isEmpty = method === 'HEAD' || status === 204 || status === 304;
  const carried = Object.entries(headers).filter(([name]) => !connectionHeaders.has(name));
  try {
    stream.respond({ ':status': status, ...Object.fromEntries(carried) }, { endStream: isEmpty });
  } catch {
    // A status or value that HTTP/2 does not have.
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    return;
  }
  // A client that still sends is asked not to (RFC 9113 §8.1).
  stream.once('finish', () => {
    if (!stream.readableEnded) stream.close(constants.NGHTTP2_NO_ERROR);
  });
  // A body that breaks off has no end, which closing the stream would send.
  answer.once('error', (error) => stream.destroy(error));
  if (isEmpty) answer.resume();
  else answer.pipe(stream);
}

function ignore(): void {}
