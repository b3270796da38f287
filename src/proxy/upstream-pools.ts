import type { buildConnector as connectors, Dispatcher, Pool } from 'undici';
import type { ProxyConfig } from '../config/config.ts';
import { giveBackSentPieces } from '../undocumented/sent-pieces.ts';
import { buildConnector, Pool as UndiciPool } from '../undocumented/undici-pool.ts';
import type { Route } from './route.ts';

/** The connections to one upstream. */
export interface Upstream {
  /** Sends a request; false when so many already wait for a connection that one more is of no use. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean;
  /** The same for a request of the hub's own. */
  ask(request: Dispatcher.RequestOptions): Promise<Dispatcher.ResponseData> | false;
  readonly pool: Pool;
}

/** The connection pools of all routes, opened at first use. */
export interface UpstreamPools extends AsyncDisposable {
  of(route: Route): Upstream;
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

/** Some applications answer with header blocks far larger than a request may have. */
const maxResponseHeaderBytes = 64 * 1024;

/**
 * How much of a body may wait for its upstream before the client has to wait too. Node's own mark is no
 * more than one read of the client's socket, so that each would stop it and start it again.
 */
const mostUnsentBytes = 128 * 1024;

export function createUpstreamPools(options: UpstreamOptions): UpstreamPools {
  const upstreams = new Map<Route, Upstream>();

  function open(route: Route): Upstream {
    const pool = new UndiciPool(route.upstream.origin, poolOptions(route, options));
    let isSaturated = false;
    const isFull = () => isSaturated && pool.stats.queued >= options.max_upstream_connections;
    const upstream: Upstream = {
      pool,
      dispatch(request, handler) {
        if (isFull()) return false;
        isSaturated = !pool.dispatch(request, handler);
        return true;
      },
      ask: (request) => !isFull() && pool.request(request),
    };
    upstreams.set(route, upstream);
    return upstream;
  }

  return {
    of: (route) => upstreams.get(route) ?? open(route),
    release(route) {
      const upstream = upstreams.get(route);
      upstreams.delete(route);
      // Nothing to report: closing a pool that is already gone is what was wanted.
      upstream?.pool.close().catch(() => {});
    },
    async [Symbol.asyncDispose]() {
      const pools = [...upstreams.values()].map(({ pool }) => pool.destroy());
      upstreams.clear();
      await Promise.all(pools);
    },
  };
}

function poolOptions(
  { upstream, upstreamTimeoutMs }: Route,
  options: UpstreamOptions,
): Pool.Options {
  return {
    connections: options.max_upstream_connections,
    pipelining: 1,
    allowH2: false,
    headersTimeout: Math.round(upstreamTimeoutMs ?? options.upstream_timeout * 1000),
    bodyTimeout: Math.round(options.body_timeout * 1000),
    keepAliveTimeout: Math.max(1, Math.round(options.upstream_idle_timeout * 1000)),
    maxHeaderSize: maxResponseHeaderBytes,
    connect: connectorTo(upstream, Math.round(options.connect_timeout * 1000)),
  };
}

/**
 * Connects to an upstream, with TLS by the name of the target: undici would take the name from the Host
 * header, which is the public one, and check the upstream's certificate against it.
 */
function connectorTo(
  { protocol, servername, socketPath }: Route['upstream'],
  timeout: number,
): connectors.connector {
  const hasTls = protocol === 'https:';
  const connect = buildConnector({
    timeout,
    allowH2: false,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(hasTls ? {} : { highWaterMark: mostUnsentBytes }),
  });
  return (target, callback) =>
    connect(hasTls ? { ...target, servername } : target, (...outcome) => {
      const [error, socket] = outcome;
      if (error === null) giveBackSentPieces(socket);
      callback(...outcome);
    });
}
