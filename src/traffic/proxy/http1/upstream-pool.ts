import type { OnReadOpts, Socket } from 'node:net';
import { ExchangeFailure } from './exchange-failure.ts';
import { type ExchangeCarrier, PendingExchange } from './pending-exchange.ts';
import {
  type ConnectionOwner,
  UpstreamConnection,
  type UpstreamTimeouts,
} from './upstream-connection.ts';
import { requestHead, type UpstreamHandler, type UpstreamRequest } from './upstream-request.ts';

/** What a pool needs to know of its upstream. */
export interface UpstreamPoolOptions {
  /** Opens a connection that reads as the options say. */
  readonly open: (onread: OnReadOpts) => Socket;
  readonly openEvent: 'connect' | 'secureConnect';
  /** Resolves where a connection that was just opened may be used; rejects where it may not. */
  readonly verify?: (() => Promise<void>) | undefined;
  /** For requests whose client named no host. */
  readonly host: string;
  readonly maxConnections: number;
  readonly timeouts: UpstreamTimeouts;
  /** Milliseconds on a monotonic clock. */
  readonly now: () => number;
}

/**
 * The connections to one upstream. A request takes the one that was used last, because the others are the
 * next to be closed by the upstream; without one it waits for the first that is opened or freed.
 */
export class UpstreamPool implements ConnectionOwner, ExchangeCarrier {
  readonly #options: UpstreamPoolOptions;
  readonly #connections = new Set<UpstreamConnection>();
  readonly #idle: UpstreamConnection[] = [];
  #waiting: PendingExchange[] = [];
  /** Those that wait for a certain connection to be opened. */
  readonly #reserved = new Map<UpstreamConnection, PendingExchange>();
  #connecting = 0;
  #isClosed = false;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
  }

  /** Whether as many requests wait as there may be connections, so that one more is of no use. */
  get isFull(): boolean {
    return this.#waiting.length >= this.#options.maxConnections;
  }

  /** Whether nothing is left of a pool that was closed. */
  get isEmpty(): boolean {
    return this.#connections.size === 0;
  }

  /**
   * Sends a request as soon as there is a connection for it; with `isFresh` on one that has carried none yet, if
   * there may be another.
   */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler, isFresh = false): void {
    let exchange: PendingExchange;
    try {
      if (this.#isClosed) throw goneError();
      const head = requestHead(request, this.#options.host);
      exchange = new PendingExchange({ request, handler, head, carrier: this });
    } catch (error) {
      handler.onResponseError(error as Error);
      return;
    }
    handler.onRequestStart(exchange);
    const mayConnect = this.#connections.size < this.#options.maxConnections;
    if (isFresh && mayConnect) {
      this.#reserved.set(this.#connect(), exchange);
      return;
    }
    const connection = this.#idle.pop();
    if (connection !== undefined) {
      connection.send(exchange);
      return;
    }
    this.#waiting.push(exchange);
    if (mayConnect && this.#connecting < this.#waiting.length) this.#connect();
  }

  /** Takes no more requests, and closes each connection as soon as those it has are answered. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  /** Breaks off whatever is under way. */
  destroy(): void {
    this.#isClosed = true;
    for (const { handler } of this.#waiting.splice(0)) handler.onResponseError(goneError());
    for (const connection of [...this.#connections]) connection.close(goneError());
  }

  /** Closes the connections that have waited for too long. */
  checkDeadlines(nowMs: number): void {
    for (const connection of this.#connections) connection.checkDeadline(nowMs);
  }

  opened(): void {
    this.#connecting -= 1;
  }

  ready(connection: UpstreamConnection): void {
    const next = this.#takeReserved(connection) ?? this.#waiting.shift();
    if (next !== undefined) connection.send(next);
    else if (this.#isClosed) connection.close();
    else this.#idle.push(connection);
  }

  gone(connection: UpstreamConnection, error?: Error): void {
    this.#connections.delete(connection);
    const place = this.#idle.lastIndexOf(connection);
    if (place !== -1) this.#idle.splice(place, 1);
    if (error !== undefined) {
      this.#connecting -= 1;
      const failed = this.#takeReserved(connection) ?? this.#waiting.shift();
      failed?.handler.onResponseError(error);
    }
    if (this.#waiting.length > this.#connecting) this.#connect();
  }

  broken(): void {
    // The others are of the same process: a request sent once more must not meet the next of them.
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  abandon(exchange: PendingExchange): void {
    this.#waiting = this.#waiting.filter((other) => other !== exchange);
    for (const [connection, other] of this.#reserved) {
      if (other === exchange) this.#reserved.delete(connection);
    }
  }

  /** An exchange that waits has nothing to be paused. */
  pause(): void {}

  resume(): void {}

  #takeReserved(connection: UpstreamConnection): PendingExchange | undefined {
    // Nearly always empty, and asked for every request.
    if (this.#reserved.size === 0) return undefined;
    const exchange = this.#reserved.get(connection);
    this.#reserved.delete(connection);
    return exchange;
  }

  #connect(): UpstreamConnection {
    const { open, openEvent, verify, timeouts, now } = this.#options;
    this.#connecting += 1;
    const connection = new UpstreamConnection({
      open,
      openEvent,
      verify,
      owner: this,
      timeouts,
      now,
    });
    this.#connections.add(connection);
    return connection;
  }
}

function goneError(): ExchangeFailure {
  return new ExchangeFailure('UPSTREAM_GONE', 'The route of the upstream is gone.');
}
