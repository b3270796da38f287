import { dateOf, monotonicMs } from '../concurrency/monotonic-clock.ts';
import type { Origins } from '../http/origins.ts';
import { serverClientId } from '../protocol/client-id.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { type Server, serverPrefix } from './server.ts';

interface Traffic {
  readonly serverId: string;
  readonly userId: string;
  readonly at: Date;
}

/** The proxy table, as far as users' servers change it. */
export interface ServerRoutes {
  /** Leads to a server that answers at a URL; gives its address as browsers are sent there. */
  open(server: Server, url: string): string;
  close(server: Server): void;
  /** The servers that had traffic since this was called last. */
  collectTraffic(): Iterable<Traffic>;
}

export function createServerRoutes(deps: {
  readonly routes: Pick<RouteTable, 'find' | 'remove' | 'replace'>;
  readonly basePath: string;
  readonly origins: Pick<Origins, 'urlOf'>;
  readonly access: Route['access'];
}): ServerRoutes {
  const { routes, basePath, origins, access } = deps;
  const open = new Map<string, Omit<Traffic, 'at'>>();
  let collectedAtMs = monotonicMs();
  const prefixOf = ({ userName, name }: Server) => serverPrefix(basePath, userName, name);

  return {
    open(server, url) {
      const { id: serverId, userId, userName, name: serverName } = server;
      const prefix = prefixOf(server);
      routes.replace({
        prefix,
        target: url,
        access,
        owner: { kind: 'server', userName, serverName },
        clientId: serverClientId(userName, serverName),
      });
      open.set(prefix, { serverId, userId });
      return origins.urlOf(prefix);
    },

    close(server) {
      const prefix = prefixOf(server);
      open.delete(prefix);
      routes.remove(prefix);
    },

    *collectTraffic() {
      const sinceMs = collectedAtMs;
      collectedAtMs = monotonicMs();
      for (const [prefix, ids] of open) {
        const lastActivityMs = routes.find(prefix)?.lastActivityMs ?? Number.NEGATIVE_INFINITY;
        if (lastActivityMs >= sinceMs) yield { ...ids, at: dateOf(lastActivityMs) };
      }
    },
  };
}
