import type { Config } from '../config/config.ts';
import type { RouteTable } from './route-table.ts';

/** Adds the routes of `Proxy.extra_routes`, open to everyone. */
export function addExtraRoutes(
  routes: Pick<RouteTable, 'add'>,
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
