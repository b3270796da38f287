import { connect as connectPlain, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { lookupUpstream as lookup } from '../../../platform/addresses/upstream-lookup.ts';
import type { ProxyConfig } from '../../../platform/config/config.ts';
import type {
  FindIdentity,
  TlsIdentity,
} from '../../../platform/internal-tls/internal-authority.ts';
import { connectUnix } from '../../../spawning/processes/unix-connection.ts';
import type { Route } from '../route.ts';
import {
  type ConnectionOwner,
  UpstreamConnection,
  type UpstreamTimeouts,
} from './upstream-connection.ts';
import {
  type ExchangeCarrier,
  type ExchangeControl,
  ExchangeFailure,
  PendingExchange,
  type ResponseHeaders,
  requestHead,
  type UpstreamHandler,
  type UpstreamRequest,
} from './upstream-message.ts';

/** The connection pools of all routes, opened at first use. */
export interface UpstreamPools extends Disposable {
  of(route: Route): UpstreamPool;
  /** Lets requests in flight end, then closes the connections of a route that is gone. */
  release(route: Route): void;
}

/** What the pools need of the configuration. */
export type UpstreamOptions = Pick<
  ProxyConfig,
  | 'connect_timeout'
  | 'upstream_timeout'
  | 'body_timeout'
  | 'upstream_idle_timeout'
  | 'max_upstream_connections'
>;

/**
 * How much of a body may wait for its upstream before the client has to wait too. Node's own mark is no
 * more than one read of the client's socket, so that each would stop it and start it again.
 */
const maxUnsentBytes = 128 * 1024;
/** How often connections are checked for timeouts: as exact as any of them has to be. */
const checkMs = 250;

/** `now` is milliseconds on a monotonic clock. `verify`: whether a connection that was just opened may be used. */
export function createUpstreamPools(
  options: UpstreamOptions & {
    readonly verify?: (() => Promise<void>) | undefined;
    readonly identity?: FindIdentity | undefined;
  },
  now: () => number,
): UpstreamPools {
  const pools = new Map<Route, UpstreamPool>();
  const closing = new Set<UpstreamPool>();
  /** Only while there are connections: each hub-singleuser has pools, and hundreds of those run on one machine. */
  let timer: NodeJS.Timeout | undefined;

  function check(): void {
    const nowMs = now();
    let isIdle = true;
    for (const pool of [...pools.values(), ...closing]) {
      pool.checkDeadlines(nowMs);
      if (pool.isEmpty) closing.delete(pool);
      else isIdle = false;
    }
    if (!isIdle) return;
    clearInterval(timer);
    timer = undefined;
  }

  function open(route: Route): UpstreamPool {
    const { upstream, upstreamTimeoutMs } = route;
    const pool = new UpstreamPool({
      open: (onread) => connectTo(upstream, onread, options.identity?.()),
      openEvent: upstream.protocol === 'https:' ? 'secureConnect' : 'connect',
      verify: options.verify,
      host: new URL(upstream.origin).host,
      maxConnections: options.max_upstream_connections,
      timeouts: {
        connectMs: unlessOff(options.connect_timeout * 1000),
        headersMs: unlessOff(upstreamTimeoutMs ?? options.upstream_timeout * 1000),
        bodyMs: unlessOff(options.body_timeout * 1000),
        idleMs: options.upstream_idle_timeout * 1000,
      },
      now,
    });
    pools.set(route, pool);
    return pool;
  }

  return {
    of(route) {
      timer ??= setInterval(check, checkMs).unref();
      return pools.get(route) ?? open(route);
    },
    release(route) {
      const pool = pools.get(route);
      if (pool === undefined) return;
      pools.delete(route);
      closing.add(pool);
      pool.close();
    },
    [Symbol.dispose]() {
      clearInterval(timer);
      for (const pool of [...pools.values(), ...closing]) pool.destroy();
      pools.clear();
      closing.clear();
    },
  };
}

/** A timeout of 0 is none. */
function unlessOff(timeoutMs: number): number {
  return timeoutMs === 0 ? Number.POSITIVE_INFINITY : timeoutMs;
}

/** With TLS by the name of the target, not by the public one that the Host header has. */
function connectTo(
  upstream: Route['upstream'],
  onread: OnReadOpts,
  identity: TlsIdentity | undefined,
): Socket {
  const { protocol, hostname, port, servername, socketPath } = upstream;
  // The types of Node know of the first for plain connections only, and of the second for none.
  const buffering = { onread, highWaterMark: maxUnsentBytes };
  if (protocol === 'https:') {
    return connectTls({ host: hostname, port, servername, lookup, ...identity, ...buffering });
  }
  if (socketPath !== undefined) return connectUnix(socketPath, buffering);
  return connectPlain({ host: hostname, port, lookup, ...buffering });
}

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

/** How an upstream begins its answer. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: ResponseHeaders;
}

/**
 * Sends a request and breaks off after the head of its answer: the body has no use and may have no end.
 * Rejects with what an exchange fails with, at the latest after the timeout.
 */
export function requestHeadOnly(
  pool: UpstreamPool,
  { request, timeoutMs }: { readonly request: UpstreamRequest; readonly timeoutMs: number },
): Promise<AnswerHead> {
  return new Promise((resolve, reject) => {
    let control: ExchangeControl | undefined;
    const timer = setTimeout(() => {
      control?.abort();
      reject(new ExchangeFailure('UPSTREAM_HEADERS_TIMEOUT', 'No answer began in time.'));
    }, timeoutMs);
    pool.dispatch(request, {
      onRequestStart(started) {
        control = started;
      },
      onResponseStarted() {},
      onResponseStart(status, headers) {
        clearTimeout(timer);
        resolve({ status, headers });
        control?.abort();
      },
      onResponseData() {},
      onResponseEnd() {},
      onResponseError(error) {
        clearTimeout(timer);
        reject(error);
      },
    });
  });
}
