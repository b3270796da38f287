import type { OnReadOpts, Socket } from 'node:net';
import { atEndOfTurn, inOwnTurn } from '../../../platform/concurrency/turns.ts';
import { sharedReadBuffer } from '../../../platform/undocumented/shared-read-buffer.ts';
import { RequestBodySender } from './request-body-sender.ts';
import { type ResponseListener, ResponseReader } from './response-reader.ts';
import {
  type ExchangeCarrier,
  ExchangeFailure,
  hasLength,
  type PendingExchange,
  type ResponseHead,
  type ResponseHeaders,
} from './upstream-message.ts';

/** How long an upstream may take, in milliseconds. */
export interface UpstreamTimeouts {
  readonly connectMs: number;
  /** From the last piece of the request to the head of the answer. */
  readonly headersMs: number;
  /** Between two pieces of the answer. */
  readonly bodyMs: number;
  /** For which a connection without a request is kept. */
  readonly idleMs: number;
}

/** The pool that a connection belongs to. */
export interface ConnectionOwner {
  /** The connection is open; `ready` follows. */
  opened(): void;
  /** The connection can take an exchange. */
  ready(connection: UpstreamConnection): void;
  /** It never will again; with an error if it was never open. */
  gone(connection: UpstreamConnection, error?: Error): void;
  /** It was closed under a request that has no answer yet: its upstream has probably ended. */
  broken(): void;
}

/** An upstream closes a connection some time before the moment it named has passed here. */
const keepAliveMarginMs = 1_000;
/** A read of more chunks takes a millisecond or so, and Node would do up to 32 in one go. */
const maxChunksAtOnce = 512;

/** One connection to an upstream, which carries one exchange at a time (RFC 9112 §9). */
export class UpstreamConnection implements ResponseListener, ExchangeCarrier {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #timeouts: UpstreamTimeouts;
  readonly #now: () => number;
  readonly #reader = new ResponseReader(this);
  #exchange: PendingExchange | undefined;
  #bodySender: RequestBodySender | undefined;
  #head: ResponseHead | undefined;
  /** Whether nothing of the exchange has been sent, so that what comes is no answer to it. */
  #isUnsent = false;
  #isOpen = false;
  #isGone = false;
  #isPaused = false;
  /** Set while others have their turn, because the last read was a costly one. */
  #awaitsTurn = false;
  #hasAnswerBegun = false;
  /** Set by the end of an answer; the next exchange waits until all that came with it is read. */
  #isFreed = false;
  #deadlineMs: number;

  constructor(options: {
    readonly open: (onread: OnReadOpts) => Socket;
    readonly openEvent: 'connect' | 'secureConnect';
    readonly verify?: (() => Promise<void>) | undefined;
    readonly owner: ConnectionOwner;
    readonly timeouts: UpstreamTimeouts;
    /** Milliseconds on a monotonic clock. */
    readonly now: () => number;
  }) {
    this.#owner = options.owner;
    this.#timeouts = options.timeouts;
    this.#now = options.now;
    this.#deadlineMs = options.now() + options.timeouts.connectMs;
    this.#socket = options.open({ buffer: sharedReadBuffer, callback: (size) => this.#read(size) });
    this.#socket
      .setNoDelay(true)
      .once(options.openEvent, () => {
        if (options.verify === undefined) this.#opened();
        else
          options.verify().then(
            () => this.#opened(),
            (error: Error) => this.#fail(error),
          );
      })
      .on('end', () => this.#ended())
      .on('close', () => this.#ended())
      .on('error', (error) => this.#broken(error));
  }

  /** Sends a request; only for a connection that is ready. */
  send(exchange: PendingExchange): void {
    const { request, head } = exchange;
    this.#exchange = exchange;
    exchange.carrier = this;
    this.#hasAnswerBegun = false;
    this.#head = undefined;
    this.#deadlineMs = this.#now() + this.#timeouts.headersMs;
    if (request.body === null) {
      this.#isUnsent = true;
      atEndOfTurn(sendHead, this);
      return;
    }
    this.#reader.begin(request.method);
    this.#bodySender = new RequestBodySender({
      socket: this.#socket,
      body: request.body,
      head,
      isChunked: !hasLength(request.headers),
      onChunk: () => {
        if (!this.#hasAnswerBegun) this.#deadlineMs = this.#now() + this.#timeouts.headersMs;
      },
      onFailure: (error) => this.#fail(error),
    });
  }

  /** Sends the request that was put off until the end of the turn, unless it was given up. */
  sendHead(): void {
    const exchange = this.#exchange;
    if (!this.#isUnsent || exchange === undefined) return;
    this.#isUnsent = false;
    this.#reader.begin(exchange.request.method);
    this.#socket.write(exchange.head, 'latin1');
  }

  abandon(exchange: PendingExchange): void {
    if (this.#exchange === exchange) this.close();
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#deadlineMs = this.#now() + this.#timeouts.bodyMs;
    if (!this.#awaitsTurn) this.#socket.resume();
  }

  /** Closes the connection; the exchange on it, if any, hears of the error if there is one. */
  close(error?: Error): void {
    if (error === undefined) this.#exchange = undefined;
    this.#fail(error ?? closedError());
  }

  /** Closes the connection if it has waited for too long. */
  checkDeadline(nowMs: number): void {
    const isAwaitingBody = this.#bodySender?.isAwaitingBody === true;
    if (nowMs < this.#deadlineMs || this.#isPaused || isAwaitingBody) return;
    if (!this.#isOpen) {
      this.#fail(
        new ExchangeFailure('UPSTREAM_CONNECT_TIMEOUT', 'No connection came about in time.'),
      );
    } else if (this.#exchange === undefined) {
      this.#fail(closedError());
    } else if (this.#head === undefined) {
      this.#fail(new ExchangeFailure('UPSTREAM_HEADERS_TIMEOUT', 'No answer began in time.'));
    } else {
      this.#fail(new ExchangeFailure('UPSTREAM_BODY_TIMEOUT', 'The answer did not go on in time.'));
    }
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    this.#exchange?.handler.onResponseStart(head.status, head.headers, head.reason);
  }

  onEarlyHints({ headers }: ResponseHead): void {
    this.#exchange?.handler.onEarlyHints?.(headers);
  }

  onBody(piece: Buffer): void {
    this.#exchange?.handler.onResponseData(piece);
  }

  onEnd(trailers?: ResponseHeaders): void {
    const { handler } = this.#exchange ?? {};
    this.#exchange = undefined;
    this.#isFreed = true;
    handler?.onResponseEnd(trailers);
  }

  #opened(): void {
    if (this.#isGone) return;
    this.#isOpen = true;
    this.#owner.opened();
    this.#becomeIdle(undefined);
  }

  /** Takes what the socket has read; whether it is to read on. */
  #read(size: number): boolean {
    if (this.#isGone) return false;
    if (this.#isUnsent) {
      this.#broken(closedError());
      return false;
    }
    if (!this.#hasAnswerBegun && this.#exchange !== undefined) {
      this.#hasAnswerBegun = true;
      this.#exchange.handler.onResponseStarted();
    }
    try {
      this.#reader.read(sharedReadBuffer.subarray(0, size));
    } catch (error) {
      this.#fail(error as Error);
      return false;
    }
    if (this.#isFreed) this.#free();
    else if (this.#head !== undefined) this.#deadlineMs = this.#now() + this.#timeouts.bodyMs;
    if (this.#reader.chunksRead > maxChunksAtOnce && !this.#isGone) {
      this.#awaitsTurn = true;
      inOwnTurn(readOn, this);
    }
    return !this.#isPaused && !this.#awaitsTurn;
  }

  /** Goes on with reading that was put off to a turn of its own. */
  readOn(): void {
    this.#awaitsTurn = false;
    if (!this.#isPaused && !this.#isGone) this.#socket.resume();
  }

  #free(): void {
    this.#isFreed = false;
    const isSent = this.#bodySender === undefined || this.#bodySender.isDone;
    this.#bodySender?.stop();
    this.#bodySender = undefined;
    if (this.#isGone) return;
    if (!isSent || this.#head?.isPersistent !== true) this.#fail(closedError());
    else this.#becomeIdle(this.#head.keepAliveMs);
  }

  #becomeIdle(keepAliveMs: number | undefined): void {
    const { idleMs } = this.#timeouts;
    const idleLimitMs = Math.min(
      idleMs,
      (keepAliveMs ?? Number.POSITIVE_INFINITY) - keepAliveMarginMs,
    );
    if (idleLimitMs <= 0) {
      this.#fail(closedError());
      return;
    }
    this.#deadlineMs = this.#now() + idleLimitMs;
    if (this.#isPaused) this.resume();
    this.#owner.ready(this);
  }

  #ended(): void {
    if (this.#isGone) return;
    try {
      this.#reader.end();
    } catch (error) {
      this.#fail(error as Error);
      return;
    }
    // One that was not checked yet has carried nothing: it is as if it had not been taken.
    this.#broken(this.#isOpen ? closedError() : refusedError());
  }

  /** The other side has closed the connection. */
  #broken(error: Error): void {
    if (this.#exchange !== undefined && !this.#hasAnswerBegun) this.#owner.broken();
    this.#fail(error);
  }

  #fail(error: Error): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#reader.stop();
    this.#bodySender?.stop();
    this.#bodySender = undefined;
    this.#socket.destroy();
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#owner.gone(this, this.#isOpen ? undefined : error);
    exchange?.handler.onResponseError(error);
  }
}

function readOn(connection: UpstreamConnection): void {
  connection.readOn();
}

function sendHead(connection: UpstreamConnection): void {
  connection.sendHead();
}

function refusedError(): Error {
  const message = 'The upstream closed the connection before it was used.';
  return Object.assign(new Error(message), { code: 'ECONNREFUSED' });
}

function closedError(): ExchangeFailure {
  return new ExchangeFailure('UPSTREAM_CLOSED', 'The upstream closed the connection.');
}
