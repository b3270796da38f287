import { EventEmitter } from 'node:events';
import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { endEmpty, responseOn, setHeaders } from '../../undocumented/node-http.ts';
import { type Answer, type AnsweringSocket, writeAnswer } from '../answer.ts';

/** Of one connection, without a meaning in HTTP/2 (RFC 9113 §8.2.2). */
export const connectionHeaders: ReadonlySet<string> = new Set(
  'connection http2-settings keep-alive proxy-connection te transfer-encoding upgrade'.split(' '),
);

/** The head of a request as HTTP/1.1 would have it. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
}

/** A request of HTTP/2 and its answer, to servers the same as one of HTTP/1.1. */
export interface Http2Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** The answer can begin at once. Nothing is read of the body before it is asked for. */
export function createExchange(
  stream: ServerHttp2Stream,
  socket: StreamSocket,
  { method, path, headers }: RequestHead,
): Http2Exchange {
  const req = new IncomingMessage(socket.asSocket);
  req.httpVersion = '1.1';
  req.httpVersionMajor = 1;
  req.httpVersionMinor = 1;
  req.method = method;
  req.url = path;
  setHeaders(req, headers);
  if (stream.endAfterHeaders) {
    req.complete = true;
    endEmpty(req, stream);
  } else {
    readBody(stream, socket, req);
  }
  const res = new Http2Response(req, stream, socket);
  res.assignSocket(socket.asSocket);
  return { req, res };
}

function readBody(stream: ServerHttp2Stream, socket: StreamSocket, req: IncomingMessage): void {
  stream.on('data', (piece: Buffer) => {
    socket.bytesRead += piece.length;
    if (!req.push(piece)) stream.pause();
  });
  stream.pause();
  stream.once('end', () => {
    if (stream.aborted) return;
    req.complete = true;
    req.push(null);
  });
  socket.once('close', () => {
    if (!req.complete) req.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
  });
}

const socketKey = Symbol('socket');
type SocketStream = ServerHttp2Stream & { [socketKey]?: StreamSocket | undefined };

/** Node's table of streams keeps some that are over until a full collection: nothing more hangs on them. */
function onClose(this: SocketStream): void {
  const socket = this[socketKey];
  this[socketKey] = undefined;
  socket?.noteClose();
}

/** One that is reset closes only when all of its body has been read, which an app may never do. */
function onAborted(this: SocketStream): void {
  this[socketKey]?.destroy();
}

/** A stream with what servers ask of the connection of a request. */
export class StreamSocket extends EventEmitter implements AnsweringSocket {
  readonly encrypted = true;
  readonly readable = true;
  readonly remoteAddress: string | undefined;
  readonly remotePort: number | undefined;
  /** Never 0, which is said of clients that were silent from the beginning. */
  bytesRead = 1;
  bytesWritten = 0;
  destroyed = false;
  /** That of all its streams. */
  readonly connection: Socket;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: SocketStream, connection: Socket) {
    super();
    this.#stream = stream;
    this.connection = connection;
    this.remoteAddress = connection.remoteAddress;
    this.remotePort = connection.remotePort;
    stream[socketKey] = this;
    stream.on('close', onClose).on('aborted', onAborted);
  }

  noteClose(): void {
    this.destroyed = true;
    this.emit('close');
  }

  get asSocket(): Socket {
    return this as unknown as Socket;
  }

  /** Of a HEAD request, Node ends the stream before there is an answer. */
  get writable(): boolean {
    return !this.destroyed;
  }

  get writableLength(): number {
    return this.#stream.writableLength;
  }

  isPaused(): boolean {
    return this.#stream.isPaused();
  }

  pause(): this {
    this.#stream.pause();
    return this;
  }

  resume(): this {
    // Without a body there is nobody to take the end, which Node reads by itself.
    if (!this.#stream.endAfterHeaders) this.#stream.resume();
    return this;
  }

  /** Resets the stream unless it is over: a body that breaks off must not look whole. */
  destroy(error: Error = new Error('the stream was given up')): this {
    this.destroyed = true;
    this.#stream.destroy(error);
    return this;
  }

  destroySoon(): void {
    if (responseOn(this.asSocket)?.writableEnded !== true) this.destroy();
  }

  answer(answer: Answer): void {
    const res = responseOn(this.asSocket);
    if (res === undefined) this.destroy();
    else writeAnswer(res.req, res, answer);
  }

  setTimeout(): this {
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }
}

type Headers = OutgoingHttpHeaders | readonly unknown[];
type Done = (error?: Error | null) => void;

/** An answer on a stream. */
class Http2Response extends ServerResponse {
  override headersSent = false;
  override writableFinished = false;
  readonly #stream: ServerHttp2Stream;
  readonly #socket: StreamSocket;
  /** The head until it is known whether a body follows. */
  #head: string[] | undefined;
  #hasBody: boolean;
  #awaitsDrain = false;
  #trailers: OutgoingHttpHeaders | undefined;

  constructor(req: IncomingMessage, stream: ServerHttp2Stream, socket: StreamSocket) {
    super(req);
    this.#stream = stream;
    this.#socket = socket;
    this.#hasBody = req.method !== 'HEAD';
  }

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    if (this.headersSent) throw new Error('The head of the answer was written before.');
    const given = typeof reason === 'object' ? reason : (headers ?? []);
    const pairs = Array.isArray(given) ? given : Object.entries(given).flat();
    this.headersSent = true;
    this.statusCode = status;
    if (status === 204 || status === 304) this.#hasBody = false;
    const head = [':status', String(status)];
    const own = this.getHeaderNames();
    if (own.length > 0) {
      for (let at = 0; at < pairs.length; at += 2) this.removeHeader(String(pairs[at]));
      for (const name of own) addHeader(head, name, this.getHeader(name));
    }
    for (let at = 0; at < pairs.length; at += 2) addHeader(head, String(pairs[at]), pairs[at + 1]);
    for (const text of head) this.#socket.bytesWritten += text.length;
    this.#head = head;
    return this;
  }

  override flushHeaders(): void {
    if (!this.headersSent) this.writeHead(this.statusCode);
    this.#sendHead({ hasBody: this.#hasBody, mayHaveTrailers: true });
  }

  override writeEarlyHints({ link }: Record<string, string | string[]>): void {
    if (link === undefined || this.headersSent || this.#socket.destroyed) return;
    this.#stream.additionalHeaders({ ':status': 103, link: [link].flat().join(', ') });
  }

  override addTrailers(trailers: OutgoingHttpHeaders | readonly [string, string][]): void {
    const entries = Array.isArray(trailers) ? trailers : Object.entries(trailers);
    this.#trailers = Object.fromEntries(
      entries.filter(([name]) => !connectionHeaders.has(name.toLowerCase())),
    );
  }

  override write(chunk: unknown, encoding?: BufferEncoding | Done, done?: Done): boolean {
    const [coding, callback] =
      typeof encoding === 'function' ? ['utf8' as const, encoding] : [encoding ?? 'utf8', done];
    this.flushHeaders();
    if (this.finished || !this.#hasBody) {
      if (callback !== undefined) process.nextTick(callback);
      return true;
    }
    this.#socket.bytesWritten += lengthOf(chunk, coding);
    const isTaken = this.#stream.write(chunk, coding, callback);
    if (!isTaken && !this.#awaitsDrain) {
      this.#awaitsDrain = true;
      this.#stream.once('drain', () => {
        this.#awaitsDrain = false;
        this.emit('drain');
      });
    }
    return isTaken;
  }

  override end(chunk?: unknown, encoding?: BufferEncoding | Done, done?: Done): this {
    if (typeof chunk === 'function') return this.end(undefined, undefined, chunk as Done);
    if (typeof encoding === 'function') return this.end(chunk, undefined, encoding);
    if (done !== undefined) this.once('finish', done);
    if (this.finished) return this;
    const bytes = lengthOf(chunk, encoding);
    if (!this.headersSent) {
      if (this.#hasBody && !this.hasHeader('content-length'))
        this.setHeader('content-length', bytes);
      this.writeHead(this.statusCode);
    }
    const mayHaveTrailers = this.#trailers !== undefined;
    this.#sendHead({ hasBody: this.#hasBody && (bytes > 0 || mayHaveTrailers), mayHaveTrailers });
    this.finished = true;
    const ended = () => this.#ended();
    if (bytes > 0 && this.#hasBody) {
      this.#socket.bytesWritten += bytes;
      this.#stream.end(chunk, encoding ?? 'utf8', ended);
    } else {
      this.#stream.end(ended);
    }
    return this;
  }

  #sendHead({ hasBody, mayHaveTrailers }: { hasBody: boolean; mayHaveTrailers: boolean }): void {
    const [stream, head] = [this.#stream, this.#head];
    this.#head = undefined;
    if (head === undefined || stream.destroyed || stream.closed) return;
    // One that ends before its request has is ended at once, without them.
    const waitForTrailers =
      hasBody && mayHaveTrailers && this.req.complete && !head.includes('content-length');
    if (waitForTrailers) {
      stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers ?? {}));
    }
    try {
      stream.respond(head, { endStream: !hasBody, waitForTrailers });
    } catch {
      // A status or value that HTTP/2 does not have.
      this.statusCode = 502;
      this.#hasBody = false;
      stream.respond({ ':status': 502 }, { endStream: true });
    }
  }

  #ended(): void {
    if (!this.#stream.writableFinished) return;
    this.writableFinished = true;
    this.emit('finish');
    if (this.req.complete) return;
    // A client that still sends is asked not to (RFC 9113 §8.1).
    this.#stream.close(constants.NGHTTP2_NO_ERROR);
    this.#socket.destroy();
  }
}

function addHeader(head: string[], name: string, value: unknown): void {
  const lowerName = name.toLowerCase();
  if (value === undefined || connectionHeaders.has(lowerName)) return;
  for (const each of Array.isArray(value) ? value : [value]) head.push(lowerName, String(each));
}

function lengthOf(chunk: unknown, encoding: BufferEncoding | undefined): number {
  if (typeof chunk === 'string') return Buffer.byteLength(chunk, encoding);
  return chunk instanceof Uint8Array ? chunk.byteLength : 0;
}
