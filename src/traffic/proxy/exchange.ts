import type { IncomingMessage, ServerResponse } from 'node:http';
import { atEndOfTurn } from '../../platform/concurrency/turns.ts';
import { HubError } from '../../platform/errors.ts';
import { recordOf } from '../../platform/http/request-log.ts';
import { SentChunks } from '../../platform/undocumented/sent-chunks.ts';
import type {
  ExchangeControl,
  ResponseHeaders,
  UpstreamHandler,
  UpstreamRequest,
} from './http1/upstream-message.ts';
import type { CloseReason, ConnectionTags, LiveConnection } from './live-connections.ts';
import { discardBody, type RequestBody } from './request-body.ts';
import { toHeaderObject } from './request-headers.ts';
import { acceptsTrailers, clientResponseHeaders, clientTrailers } from './response-headers.ts';
import type { RouteLimiter } from './route-limiter.ts';
import { takesTooLong, toCloseError, toUpstreamError, uploadTooSlow } from './upstream-error.ts';

/** A request with a body that can be given up for another one. */
export interface ForwardedRequest extends UpstreamRequest {
  body: RequestBody | null;
}

/** What an exchange asks of the forwarder. */
export interface ExchangeHost {
  dispatch(exchange: Exchange): void;
  answerError(req: IncomingMessage, res: ServerResponse, error: HubError): void;
  /** Called once, when nothing more goes either way but what is buffered. */
  finished(exchange: Exchange): void;
  /** Called once, when the client has its whole answer or is gone. */
  closed(exchange: Exchange, res: ServerResponse): void;
  failed(exchange: Exchange, error: unknown): void;
  /** Milliseconds on a monotonic clock. */
  now(): number;
  readonly sendsTrailersUnasked: boolean;
  /** How long an upstream that restarts is waited for. */
  readonly reconnectMs: number;
}

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
const brokenConnection = new Set(['UPSTREAM_CLOSED', 'ECONNRESET', 'EPIPE']);
const refusedConnection = new Set(['ECONNREFUSED', 'ENOENT']);
/** An upstream that answered within this time and is gone now is restarting, not missing. */
const recentlyMs = 10_000;
const firstReconnectDelayMs = 25;
const plainReason = /^[\x20-\x7e]*$/;
/**
 * How much of an answer may wait for its client before the upstream has to wait too. Node's own mark is
 * no more than one read of the upstream's socket, so that each would stop it and start it again.
 */
const maxUnsentBytes = 128 * 1024;
/** Up to here Node copies head and body together on the stack and sends them by one plain write. */
const largestJoinedBody = 12 * 1024;

/**
 * One forwarded request: one object, and no closure for a piece of body.
 */
export class Exchange implements UpstreamHandler, LiveConnection {
  readonly kind = 'http';
  readonly tags: ConnectionTags;
  readonly req: IncomingMessage;
  readonly request: ForwardedRequest;
  /** Sent once more, it must not meet another connection that is closed by now. */
  isRetried = false;
  readonly #res: ServerResponse;
  readonly #responseHeadersToAdd: readonly string[] | undefined;
  readonly #host: ExchangeHost;
  #control: ExchangeControl | undefined;
  #hasUpstreamAnswered = false;
  #isPaused = false;
  #isEventStream = false;
  #isOver = false;
  #reconnects = 0;
  /** The head of the answer until its body begins. */
  #head: { readonly status: number; readonly reason: string; readonly pairs: string[] } | undefined;
  /** Length the upstream announced of its answer, where a short one can be sent along with its head. */
  #joinedLength = -1;
  #joinedBody: string | undefined;
  #sentChunks: SentChunks | undefined;
  #trailers: ResponseHeaders | undefined;
  /** Set while nothing more is sent, as the limits of the route want it. */
  #rest: NodeJS.Timeout | undefined;
  #endsAfterRest = false;
  #startedMs = 0;
  #touchedMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: {
    readonly req: IncomingMessage;
    readonly res: ServerResponse;
    readonly tags: ConnectionTags;
    readonly request: ForwardedRequest;
    readonly responseHeadersToAdd: readonly string[] | undefined;
    readonly host: ExchangeHost;
  }) {
    this.req = options.req;
    this.#res = options.res;
    this.tags = options.tags;
    this.request = options.request;
    this.#responseHeadersToAdd = options.responseHeadersToAdd;
    this.#host = options.host;
    // It comes once; `once` itself would cost each request another closure.
    this.#res.on('close', () => this.#clientClosed());
    const { limiter } = options.tags.route;
    if (limiter !== undefined) {
      this.#startedMs = this.#touchedMs = options.host.now();
      this.#watch(limiter);
    }
  }

  /** Ends the exchange when its time, or that of nothing moving, is over by the limits of its route. */
  #watch(limiter: RouteLimiter): void {
    const { requestTimeoutMs, idleTimeoutMs } = limiter;
    const dueMs = Math.min(this.#startedMs + requestTimeoutMs, this.#touchedMs + idleTimeoutMs);
    if (dueMs === Infinity) return;
    const waitMs = Math.ceil(dueMs - this.#host.now());
    if (waitMs > 0) this.#timer = setTimeout(() => this.#watch(limiter), waitMs).unref();
    else
      this.#cut(this.request.body === null || this.req.complete ? takesTooLong() : uploadTooSlow());
  }

  onRequestStart(control: ExchangeControl): void {
    this.#control = control;
  }

  onResponseStarted(): void {
    this.#hasUpstreamAnswered = true;
    this.request.body?.forget();
  }

  /**
   * To browsers that open a page, which alone use them: there are clients of HTTP/1.1 that take an interim answer for the
   * final one (RFC 8297 §3).
   */
  onEarlyHints(headers: ResponseHeaders): void {
    if (this.#isOver || this.req.headers['sec-fetch-mode'] !== 'navigate') return;
    const { link } = toHeaderObject(
      clientResponseHeaders({ link: headers['link'] }, this.tags.route),
    );
    if (link === undefined) return;
    try {
      // One by one, as Node checks them.
      this.#res.writeEarlyHints({ link: String(link).split(/,\s*(?=<)/) });
    } catch {
      // Links that Node takes for none.
    }
  }

  onResponseStart(status: number, headers: ResponseHeaders, reason: string): void {
    this.touch();
    this.tags.route.lastAnswerMs = this.tags.route.lastActivityMs;
    const { route, client } = this.tags;
    route.load.answers += 1;
    route.load.answerMs += performance.now() - recordOf(this.req).startedAtMs;
    const pairs = clientResponseHeaders(headers, route, [client?.host, this.req.headers.host]);
    if (this.#responseHeadersToAdd !== undefined) pairs.push(...this.#responseHeadersToAdd);
    this.#head = { status, reason, pairs };
    const length = headers['content-length'];
    if (length !== undefined) {
      this.#joinedLength = Number(length);
      return;
    }
    // An event stream may begin long before its first event.
    atEndOfTurn(flushHead, this);
    this.#isEventStream = String(headers['content-type']).startsWith('text/event-stream');
  }

  onResponseData(borrowedChunk: Buffer): void {
    this.touch();
    this.#writeHead();
    if (this.tags.route.limiter !== undefined) this.#restAfter(borrowedChunk.length);
    // Nothing can follow a chunk as long as the announced length, so its end comes in this very turn.
    if (borrowedChunk.length === this.#joinedLength && borrowedChunk.length <= largestJoinedBody) {
      // Latin-1 is every byte as it is. As text, the body is joined to the head, and both go by one write.
      this.#joinedBody = borrowedChunk.toString('latin1');
      return;
    }
    const chunk = SentChunks.copyOf(borrowedChunk);
    this.#sentChunks ??= new SentChunks(() => this.#allSent());
    this.#res.write(chunk, this.#sentChunks.sending(chunk));
    if (this.#res.writableLength < maxUnsentBytes && !this.#sentChunks.isFull) return;
    this.#isPaused = true;
    this.#control?.pause();
  }

  #allSent(): void {
    // By now, the connection may have another exchange.
    if (!this.#isPaused || this.#isOver || this.#rest !== undefined) return;
    this.#isPaused = false;
    this.#control?.resume();
  }

  #restAfter(bytes: number): void {
    const { route, userName, client } = this.tags;
    const address = client?.address ?? '';
    const waitMs = route.limiter?.takeBytes({ userName, address }, bytes) ?? 0;
    if (waitMs === 0) return;
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#restOver(), waitMs).unref();
    this.#isPaused = true;
    this.#control?.pause();
  }

  #restOver(): void {
    this.#rest = undefined;
    this.touch();
    if (this.#endsAfterRest) this.onResponseEnd();
    else this.#allSent();
  }

  onResponseEnd(trailers?: ResponseHeaders): void {
    if (this.#isOver) return;
    const isWanted = this.#host.sendsTrailersUnasked || acceptsTrailers(this.req.headers);
    if (trailers !== undefined && isWanted) this.#trailers = trailers;
    this.#endsAfterRest = this.#rest !== undefined;
    if (this.#endsAfterRest) return;
    this.#finish();
    // What was sent before goes out together with the end.
    if (this.#sentChunks === undefined) atEndOfTurn(endAnswer, this);
    else this.endAnswer();
  }

  /** Sends the head of an answer whose body has not begun. */
  flushHead(): void {
    if (this.#isOver || this.#res.destroyed) return;
    this.#writeHead();
    this.#res.flushHeaders();
  }

  /** Sends the end of the answer, with all of it that was kept for that. */
  endAnswer(): void {
    this.#writeHead();
    // Node leaves them out where the answer does not come in chunks.
    if (this.#trailers !== undefined) {
      this.#res.addTrailers(clientTrailers(this.#trailers, this.tags.route));
    }
    if (this.#joinedBody === undefined) this.#res.end();
    else this.#res.end(this.#joinedBody, 'latin1');
  }

  onResponseError(error: Error): void {
    if (this.#isOver) return;
    if (this.req.socket.destroyed) {
      this.#finish();
      return;
    }
    if (this.#prepareRetry(error)) {
      // Not from within the clean-up of the broken connection.
      process.nextTick(() => this.#host.dispatch(this));
      return;
    }
    if (this.#awaitRestart(error)) return;
    if (!(error instanceof HubError)) this.#host.failed(this, error);
    this.#answerOrDestroy(toUpstreamError(error));
  }

  /** Cuts the exchange off from the hub's side. */
  close(reason: CloseReason): void {
    if (!this.#isOver) this.#cut(toCloseError(reason));
  }

  #cut(error: HubError): void {
    this.#answerOrDestroy(error);
    this.#control?.abort();
  }

  /** Ends an event stream as if the upstream had: the browser comes back by itself. */
  endStream(): void {
    if (this.#isOver || !this.#isEventStream) return;
    this.onResponseEnd();
    this.#control?.abort();
  }

  /** Notes traffic on the route. */
  touch(): void {
    this.#touchedMs = this.#host.now();
    this.tags.route.lastActivityMs = this.#touchedMs;
  }

  /** The client went away, or has its whole answer. */
  #clientClosed(): void {
    this.#host.closed(this, this.#res);
    if (this.#isOver) return;
    this.#finish();
    this.#control?.abort();
  }

  /** Only now: an answer that breaks off before its body is refused as a whole. */
  #writeHead(): void {
    if (this.#head === undefined) return;
    const { status, reason, pairs } = this.#head;
    this.#head = undefined;
    if (reason !== '' && plainReason.test(reason)) this.#res.writeHead(status, reason, pairs);
    else this.#res.writeHead(status, pairs);
  }

  #answerOrDestroy(error: HubError): void {
    this.#finish();
    if (this.#res.headersSent) {
      this.#res.destroy();
      return;
    }
    // A refused answer of the upstream may have left its reason phrase behind.
    this.#res.statusMessage = '';
    this.#host.answerError(this.req, this.#res, error);
  }

  #finish(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#rest);
    if (this.request.body !== null) {
      this.request.body.destroy();
      discardBody(this.req);
    }
    this.#host.finished(this);
  }

  /**
   * Whether the request may be sent once more: an idle connection was closed under it, and either
   * nothing of it was sent or repeating it does no harm (RFC 9110 §9.2.2).
   */
  #prepareRetry(error: Error): boolean {
    const code = 'code' in error ? String(error.code) : '';
    if (this.isRetried || this.#hasUpstreamAnswered || !brokenConnection.has(code)) return false;
    const { body, method } = this.request;
    const isUnsent = body?.isUntouched === true;
    if (!isUnsent && !isIdempotent(method)) return false;
    if (!this.#renewBody()) return false;
    this.isRetried = true;
    return true;
  }

  /** Makes ready a body that was on its way, if there is one; false when it cannot be sent once more. */
  #renewBody(): boolean {
    const { body } = this.request;
    if (body === null) return true;
    const renewed = body.again();
    if (renewed !== undefined) this.request.body = renewed;
    return renewed !== undefined;
  }

  /**
   * Tries again in a moment when the upstream takes no connections but did a moment ago. Of such a
   * request nothing was sent, so that nothing is done twice, and its body waits with the client.
   */
  #awaitRestart(error: Error): boolean {
    const { route } = this.tags;
    const code = 'code' in error ? String(error.code) : '';
    const isRestarting =
      route.isReady && this.#host.now() - route.lastAnswerMs < recentlyMs + this.#host.reconnectMs;
    if (!refusedConnection.has(code) || !isRestarting) return false;
    const delayMs = firstReconnectDelayMs * 2 ** this.#reconnects;
    // The delays double, so this one is about as long as all before it together.
    if (delayMs * 2 > this.#host.reconnectMs || !this.#renewBody()) return false;
    this.#reconnects += 1;
    setTimeout(() => {
      if (!this.#isOver) this.#host.dispatch(this);
    }, delayMs).unref();
    return true;
  }
}

/** Whether sending a request twice does no more than sending it once (RFC 9110 §9.2.2). */
export function isIdempotent(method: string): boolean {
  return idempotentMethods.has(method);
}

function endAnswer(exchange: Exchange): void {
  exchange.endAnswer();
}

function flushHead(exchange: Exchange): void {
  exchange.flushHead();
}
