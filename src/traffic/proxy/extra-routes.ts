import type { Config } from '../../platform/config/config.ts';
import { placeOf } from '../../platform/config/route-services.ts';
import { forwardingOf } from '../../platform/protocol/identity-headers.ts';
import type { RouteDefinition } from './route.ts';
import type { RouteTable } from './route-table.ts';

type RouteConfig = Pick<Config, 'Proxy' | 'basePath' | 'publicUrl'>;

/** The routes of `Proxy.extra_routes` that are open to everyone; the guarded ones are services. */
export interface ExtraRoutes {
  /** Brings the table to a new configuration; what did not change stays, with its connections. */
  apply(config: RouteConfig): void;
}

export function createExtraRoutes(
  routes: Pick<RouteTable, 'replace' | 'remove' | 'find'>,
): ExtraRoutes {
  const applied = new Map<string, string>();
  return {
    apply(config) {
      const wanted = new Map(definitionsOf(config).map((each) => [keyOf(each), each]));
      for (const key of applied.keys()) {
        // A service may stand there by now.
        if (wanted.has(key) || routes.find(key)?.owner.kind !== 'extra') continue;
        routes.remove(key);
      }
      for (const [key, definition] of wanted) {
        if (applied.get(key) !== JSON.stringify(definition)) routes.replace(definition);
      }
      applied.clear();
      for (const [key, definition] of wanted) applied.set(key, JSON.stringify(definition));
    },
  };
}

function definitionsOf({ Proxy: proxy, ...address }: RouteConfig): RouteDefinition[] {
  return Object.entries(proxy.extra_routes).flatMap(([spec, route]) => {
    const { access, target, limits } = route;
    if (access !== 'public' || target === undefined) return [];
    const { host, prefix } = placeOf(spec, address);
    return [
      {
        prefix,
        host,
        stripsPrefix: route.strip_prefix,
        forwarding: forwardingOf(route),
        limits,
        target,
        access,
        owner: { kind: 'extra' as const },
        upstreamTimeoutMs:
          route.upstream_timeout === undefined ? undefined : route.upstream_timeout * 1000,
      },
    ];
  });
}

function keyOf({ host = '', prefix }: RouteDefinition): string {
  return host + prefix;
}
