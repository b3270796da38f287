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
