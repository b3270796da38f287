import { dateOf } from '../../platform/concurrency/monotonic-clock.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { serverClientId } from '../../platform/protocol/client-id.ts';
import type { RouteLoad } from '../../traffic/proxy/route-load.ts';
import type { RouteTable } from '../../traffic/proxy/route-table.ts';
import type { AppAccess } from './app-access.ts';
import { type Server, serverPrefix } from './server.ts';

interface Traffic {
  readonly serverId: string;
  readonly userId: string;
  readonly at: Date;
}

/** Where a server answers that another instance runs. */
export interface RemoteOwner {
  readonly url: string;
  /** Id of the instance to which requests are passed on; undefined where its server is reached from here. */
  readonly via: string | undefined;
}

/** The proxy table, as far as users' servers change it. */
export interface ServerRoutes {
  /** Leads to a server of this instance; gives its address as browsers are sent there. */
  open(server: Server, url: string): string;
  /** Closes the route of a server of this instance. */
  close(server: Server): void;
  /**
   * Leads to these servers of other instances, and to no others of theirs; what this instance runs is left
   * as it is.
   */
  routeToRemote(servers: Iterable<readonly [Server, RemoteOwner]>): void;
  /** Whether there is a route to a server, whichever instance runs it. */
  isOpen(server: Server): boolean;
  /** The routes of servers, with their ids, and whether this instance runs them. */
  loads(): Iterable<ServerLoad>;
  /** When each server was used last, by the monotonic clock, as far as it was here. */
  uses(): Iterable<readonly [serverId: string, atMs: number]>;
  /** Where those of these servers that run here list their kernels, as far as that is known. */
  kernelLists(serverIds: ReadonlySet<string>): Iterable<readonly [string, KernelList]>;
  /** Where this one lists them, if it is reached from here without another instance. */
  kernelListOf(server: Server): KernelList | undefined;
  /** The servers that had traffic since this was called last. */
  collectTraffic(): Iterable<Traffic>;
}

export interface KernelList {
  readonly url: string;
  readonly path: string;
}

export interface ServerLoad {
  readonly serverId: string;
  readonly isHere: boolean;
  readonly load: RouteLoad;
}

interface OpenRoute extends Omit<Traffic, 'at'> {
  /** Undefined for a server of this instance. */
  readonly remote: RemoteOwner | undefined;
  /** What the route has for its last activity before there was any. */
  readonly openedAtMs: number | undefined;
  readonly kernelsPath: string | undefined;
}

export function createServerRoutes(deps: {
  readonly routes: Pick<RouteTable, 'find' | 'remove' | 'replace'>;
  readonly basePath: string;
  readonly origins: Pick<Origins, 'urlOf'>;
  readonly accessOf: (server: Server) => AppAccess;
  /** Whether it is known how much a server of this instance works, so that what it sends need not count as use. */
  readonly isMeasured: (serverId: string) => boolean;
}): ServerRoutes {
  const { routes, basePath, origins } = deps;
  const open = new Map<string, OpenRoute>();
  let collectedAtMs = performance.now();
  const prefixOf = ({ userName, name }: Server) => serverPrefix(basePath, userName, name);

  function lead(server: Server, target: string, remote: RemoteOwner | undefined): string {
    const { id: serverId, userId, userName, name: serverName } = server;
    const prefix = prefixOf(server);
    const current = open.get(prefix)?.serverId === serverId ? routes.find(prefix) : undefined;
    let kernelsPath = open.get(prefix)?.kernelsPath;
    // Connections to a server that only passed to another instance go on.
    if (current?.target !== target || current.via !== remote?.via) {
      const { access, forwarding, limits, stripsPrefix, ...app } = deps.accessOf(server);
      kernelsPath = app.kernelsPath && (stripsPrefix ? '/' : prefix) + app.kernelsPath.slice(1);
      routes.replace({
        prefix,
        target,
        access,
        forwarding,
        limits,
        stripsPrefix,
        owner: { kind: 'server', userName, serverName },
        serverId,
        clientId: serverClientId(userName, serverName),
        via: remote?.via,
      });
    }
    const openedAtMs = routes.find(prefix)?.lastActivityMs;
    open.set(prefix, { serverId, userId, remote, openedAtMs, kernelsPath });
    return prefix;
  }

  function remove(prefix: string): void {
    open.delete(prefix);
    routes.remove(prefix);
  }

  return {
    open: (server, url) => origins.urlOf(lead(server, url, undefined)),

    close(server) {
      const prefix = prefixOf(server);
      if (open.get(prefix)?.remote === undefined) remove(prefix);
    },

    routeToRemote(servers) {
      const wanted = new Set<string>();
      for (const [server, remote] of servers) {
        const prefix = prefixOf(server);
        wanted.add(prefix);
        const current = open.get(prefix);
        const isLocal = current !== undefined && current.remote === undefined;
        const isSame =
          current?.serverId === server.id &&
          current.remote?.url === remote.url &&
          current.remote.via === remote.via;
        if (!isLocal && !isSame) lead(server, remote.url, remote);
      }
      for (const [prefix, { remote }] of open) {
        if (remote !== undefined && !wanted.has(prefix)) remove(prefix);
      }
    },

    isOpen: (server) => open.get(prefixOf(server))?.serverId === server.id,

    *loads() {
      for (const [prefix, { serverId, remote }] of open) {
        const load = routes.find(prefix)?.load;
        if (load !== undefined) yield { serverId, isHere: remote === undefined, load };
      }
    },

    *uses() {
      for (const [prefix, { serverId }] of open) {
        const route = routes.find(prefix);
        if (route !== undefined) yield [serverId, route.lastUseMs];
      }
    },

    *kernelLists(serverIds) {
      for (const [prefix, { serverId, remote, kernelsPath: path }] of open) {
        const url = routes.find(prefix)?.target;
        const isAsked = remote === undefined && serverIds.has(serverId);
        if (isAsked && url !== undefined && path !== undefined) yield [serverId, { url, path }];
      }
    },

    kernelListOf(server) {
      const prefix = prefixOf(server);
      const { serverId, remote, kernelsPath: path } = open.get(prefix) ?? {};
      const url = routes.find(prefix)?.target;
      const isReached = serverId === server.id && remote?.via === undefined;
      return isReached && url !== undefined && path !== undefined ? { url, path } : undefined;
    },

    *collectTraffic() {
      const sinceMs = collectedAtMs;
      collectedAtMs = performance.now();
      for (const [prefix, { serverId, userId, remote, openedAtMs }] of open) {
        const route = routes.find(prefix);
        if (route === undefined) continue;
        // The instance that runs a server measures it, and sees what it sends where that cannot be.
        const isMeasured = remote !== undefined || deps.isMeasured(serverId);
        const usedMs = isMeasured ? route.lastUseMs : route.lastActivityMs;
        // A new route is no visitor: a hub that starts would have all servers in use.
        if (usedMs >= sinceMs && usedMs !== openedAtMs)
          yield { serverId, userId, at: dateOf(usedMs) };
      }
    },
  };
}
