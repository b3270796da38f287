import type { Config } from '../config/config.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { Service } from '../services/service.ts';
import type { ServiceRoutes } from '../services/service-routes.ts';

/** Creates the entries of services in the proxy table: open while ready, closed in between. */
export function createServiceRoutes(routes: RouteTable): ServiceRoutes {
  function put(service: Service, isReady: boolean): void {
    if (service.url === undefined) return;
    const current = routes.find(service.prefix);
    const isSame =
      current?.target === service.url &&
      current.access === service.access &&
      current.clientId === service.clientId &&
      current.upstreamTimeoutMs === service.upstreamTimeoutMs;
    if (isSame) {
      routes.setReady(service.prefix, isReady);
      return;
    }
    routes.replace({
      prefix: service.prefix,
      target: service.url,
      access: service.access,
      owner: { kind: 'service', name: service.name },
      clientId: service.clientId,
      upstreamTimeoutMs: service.upstreamTimeoutMs,
      isReady,
    });
  }

  return {
    open: (service) => put(service, true),
    close: (service) => put(service, false),
    remove: (service) => void routes.remove(service.prefix),
  };
}

/** Adds the routes of `Proxy.extra_routes`, open to everyone. */
export function addExtraRoutes(
  routes: RouteTable,
  config: Pick<Config, 'Proxy' | 'basePath'>,
): void {
  for (const [prefix, route] of Object.entries(config.Proxy.extra_routes)) {
    routes.add({
      prefix: config.basePath + prefix.slice(1),
      target: route.target,
      access: route.access,
      owner: { kind: 'extra' },
      upstreamTimeoutMs:
        route.upstream_timeout === undefined ? undefined : route.upstream_timeout * 1000,
    });
  }
}
