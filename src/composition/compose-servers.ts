import { isAbsolute, join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { HubError } from '../errors.ts';
import { createPluginLog } from '../logging/plugin-log.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { startSpawner } from '../plugin-host/create-plugins.ts';
import type { PreparedPlugins } from '../plugin-host/prepare-plugins.ts';
import type { Spawner } from '../plugin-host/spawner.ts';
import { createBoundedProbe, waitUntilReady } from '../processes/readiness-probe.ts';
import { serverClientId } from '../protocol/client-id.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { createActivityLog } from '../servers/activity.ts';
import { serverPrefix } from '../servers/server.ts';
import { createServerLifecycle } from '../servers/server-lifecycle.ts';
import type { UnitEvents } from '../servers/server-unit.ts';
import { type BeforeSpawn, type BeforeStop, createUserServers } from '../servers/user-servers.ts';
import type { ComposedOAuth } from './compose-oauth.ts';
import type { Stores } from './stores.ts';

/** The life of users' servers. */
export type ComposedServers = Awaited<ReturnType<typeof composeServers>>;

/** How many servers are asked at once whether they answer. */
const parallelProbes = 64;

/** Creates the spawner and the life of the servers over it. */
export async function composeServers(
  deps: {
    readonly config: Config;
    readonly plugins: PreparedPlugins;
    readonly stores: Stores;
    readonly oauth: ComposedOAuth;
    readonly routes: RouteTable;
    readonly metrics: Metrics;
    readonly apiUrl: string;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly stopsServersAtEnd: () => boolean;
    readonly beforeSpawn: BeforeSpawn;
    readonly beforeStop: BeforeStop;
    readonly afterStop: (userName: string, serverName: string) => Promise<void>;
    readonly log: Logger;
  },
  disposables: AsyncDisposableStack,
) {
  const { config, plugins, stores, oauth, routes, metrics, log } = deps;
  const { Hub, Spawner: spawnerConfig, basePath } = config;
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(config.directory, path));

  const spawner =
    plugins.spawner === undefined
      ? noSpawner
      : await startSpawner(plugins.spawner, {
          log: createPluginLog(log, { spawner: plugins.spawner.plugin.name }),
          runtimeDirectory: resolvePath(join(Hub.log_dir, 'servers')),
        });
  disposables.defer(async () => spawner[Symbol.asyncDispose]?.());

  const probe = createBoundedProbe(parallelProbes);
  const activeServers = new Map<string, { readonly serverId: string; readonly userId: string }>();
  const events: UnitEvents = {
    onReady(server, url) {
      const prefix = serverPrefix(basePath, server.userName, server.name);
      routes.replace({
        prefix,
        target: url,
        access: spawnerConfig.access === 'gateway' ? 'gateway' : 'server',
        owner: { kind: 'server', userName: server.userName, serverName: server.name },
        clientId: serverClientId(server.userName, server.name),
      });
      activeServers.set(prefix, { serverId: server.id, userId: server.userId });
      return prefix;
    },
    onUnavailable(server) {
      const prefix = serverPrefix(basePath, server.userName, server.name);
      activeServers.delete(prefix);
      routes.remove(prefix);
    },
    async onGone(server) {
      await stores.accessTokens.revokeByServer(server.id);
      await deps.afterStop(server.userName, server.name);
    },
    onStartEnded: (outcome, seconds) => metrics.countSpawn(outcome, seconds),
  };

  const lifecycle = disposables.use(
    createServerLifecycle({
      store: stores.servers,
      spawner,
      events,
      limits: {
        concurrentSpawns: Hub.concurrent_spawn_limit,
        activeServers: Hub.active_server_limit,
      },
      pollIntervalMs: spawnerConfig.poll_interval * 1000,
      stopGraceMs: spawnerConfig.stop_timeout * 1000,
      stopsServersAtEnd: deps.stopsServersAtEnd,
      log,
    }),
  );
  const servers = createUserServers({
    config,
    isConfigured: plugins.spawner !== undefined,
    apiUrl: deps.apiUrl,
    environment: deps.environment,
    users: stores.users,
    store: stores.servers,
    lifecycle,
    spawner,
    accessTokens: stores.accessTokens,
    tokenIssuer: oauth.tokenIssuer,
    roles: stores.roles,
    beforeSpawn: deps.beforeSpawn,
    beforeStop: deps.beforeStop,
    log,
    async waitUntilReady(url, prefix, timeoutMs, signal) {
      const result = await waitUntilReady({ url, path: prefix, timeoutMs, signal, probe });
      if (result.ready) return;
      throw new Error(
        `The server started but did not answer within ${timeoutMs / 1000} seconds: ${result.reason}.`,
      );
    },
    resolvePath,
  });

  let collectedAt = Date.now();
  const activityLog = disposables.use(
    createActivityLog({
      users: stores.users,
      servers: stores.servers,
      *collectTraffic() {
        const since = collectedAt;
        collectedAt = Date.now();
        for (const [prefix, ids] of activeServers) {
          const lastActivityMs = routes.find(prefix)?.lastActivityMs ?? 0;
          if (lastActivityMs >= since) yield { ...ids, at: new Date(lastActivityMs) };
        }
      },
      log,
    }),
  );
  return { spawner, lifecycle, servers, activityLog };
}

/** Stands in where no command for servers is configured. */
const noSpawner: Spawner = {
  start: () =>
    Promise.reject(new HubError('unavailable', 'No servers are configured on this hub.')),
  stop: () => Promise.resolve(),
  poll: () => Promise.resolve({ running: false }),
  restore: () => Promise.resolve(undefined),
};
