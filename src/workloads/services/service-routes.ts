import { isDeepStrictEqual } from 'node:util';
import { nowhere } from '../../traffic/proxy/route.ts';
import type { RouteTable } from '../../traffic/proxy/route-table.ts';
import type { Service } from './service.ts';

/** The proxy table, as far as services change it. Does nothing for services without pages. */
export interface ServiceRoutes {
  /**
   * Lets visitors through; called again when the service has changed. `via` is the instance that alone
   * reaches it, if there is one.
   */
  open(service: Service, via?: string): void;
  /** Keeps the route, but lets visitors wait on a page that tries again. */
  close(service: Service): void;
  /** Takes the route away: the service is no longer configured. */
  remove(service: Service): void;
}

export function createServiceRoutes(routes: RouteTable): ServiceRoutes {
  function put(service: Service, isReady: boolean, via?: string): void {
    const target = service.isBehindProxy ? nowhere : service.url;
    if (target === undefined) return;
    const key = keyOf(service);
    const current = routes.find(key);
    const isSame =
      current?.target === target &&
      current.access === service.access &&
      current.clientId === service.clientId &&
      current.stripsPrefix === service.stripsPrefix &&
      isDeepStrictEqual(current.rules, service.rules) &&
      isDeepStrictEqual(current.forwarding, service.forwarding) &&
      isDeepStrictEqual(current.limits, service.limits) &&
      (current.via === via || !isReady) &&
      current.upstreamTimeoutMs === service.upstreamTimeoutMs;
    if (isSame) {
      routes.setReady(key, isReady);
      return;
    }
    routes.replace({
      prefix: service.prefix,
      host: service.host,
      origin: service.origin,
      stripsPrefix: service.stripsPrefix,
      forwarding: service.forwarding,
      rules: service.rules,
      limits: service.limits,
      target,
      isBehindProxy: service.isBehindProxy,
      access: service.access,
      owner: { kind: 'service', name: service.name },
      clientId: service.clientId,
      upstreamTimeoutMs: service.upstreamTimeoutMs,
      isReady,
      via,
    });
  }

  return {
    open: (service, via) => put(service, true, via),
    close: (service) => put(service, false),
    remove: (service) => void routes.remove(keyOf(service)),
  };
}

function keyOf({ host = '', prefix }: Service): string {
  return host + prefix;
}
