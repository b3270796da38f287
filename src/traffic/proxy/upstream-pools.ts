import { connect as connectPlain, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { lookupUpstream as lookup } from '../../platform/addresses/upstream-lookup.ts';
import type { ProxyConfig } from '../../platform/config/config.ts';
import { connectUnix } from '../../spawning/processes/unix-connection.ts';
import { UpstreamPool } from './http1/upstream-pool.ts';
import type { Route } from './route.ts';

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
  options: UpstreamOptions & { readonly verify?: (() => Promise<void>) | undefined },
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
      open: (onread) => connectTo(upstream, onread),
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
function connectTo(upstream: Route['upstream'], onread: OnReadOpts): Socket {
  const { protocol, hostname, port, servername, socketPath } = upstream;
  // The types of Node know of the first for plain connections only, and of the second for none.
  const buffering = { onread, highWaterMark: maxUnsentBytes };
  if (protocol === 'https:') {
    return connectTls({ host: hostname, port, servername, lookup, ...buffering });
  }
  if (socketPath !== undefined) return connectUnix(socketPath, buffering);
  return connectPlain({ host: hostname, port, lookup, ...buffering });
}
