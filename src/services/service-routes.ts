import type { RouteTable } from '../proxy/route-table.ts';
import type { Service } from './service.ts';

/** The proxy table, as far as services change it. Called only for services with a url. */
export interface ServiceRoutes {
  /** Lets visitors through; called again when the service has changed. */
  open(service: Service): void;
  /** Keeps the route, but lets visitors wait on a page that tries again. */
  close(service: Service, reason: string): void;
  /** Takes the route away: the service is no longer configured. */
  remove(service: Service): void;
}

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
