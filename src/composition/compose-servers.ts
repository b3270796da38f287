import { isAbsolute, join, resolve } from 'node:path';
import type { Logger } from 'pino';
import type { SpawnHooks } from '../identity/authentication/spawn-hooks.ts';
import { actAsHub } from '../platform/audit/actor.ts';
import type { Config } from '../platform/config/config.ts';
import { spawnerOf } from '../platform/config/profile-spawner.ts';
import { createPluginLog } from '../platform/logging/plugin-log.ts';
import { forwardingOf } from '../platform/protocol/identity-headers.ts';
import { startSpawner, startSpawnHook } from '../plugin/host/create-plugins.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import { createBoundedProbe } from '../spawning/processes/readiness-probe.ts';
import type { RouteTable } from '../traffic/proxy/route-table.ts';
import { createActivityLog, flushIntervalMs } from '../workloads/servers/activity.ts';
import { createAddressReports } from '../workloads/servers/address-reports.ts';
import { createLaunchPlanner, identityOf } from '../workloads/servers/launch-plan.ts';
import { createLimitWatch } from '../workloads/servers/limit-watch.ts';
import { noSpawner } from '../workloads/servers/no-spawner.ts';
import {
  answerProgress,
  createRemoteProgress,
  progressOperation,
} from '../workloads/servers/remote-progress.ts';
import {
  addressOperation,
  createReportedAddresses,
  takeAddress,
} from '../workloads/servers/reported-addresses.ts';
import { createDecideAccount } from '../workloads/servers/server-accounts.ts';
import { createServerLifecycle } from '../workloads/servers/server-lifecycle.ts';
import { createServerLimitsStore } from '../workloads/servers/server-limits-store.ts';
import {
  answerServerOutput,
  createServerOutput,
  serverOutputOperation,
} from '../workloads/servers/server-output.ts';
import { createServerRoutes } from '../workloads/servers/server-routes.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import type { UnitEvents } from '../workloads/servers/server-unit.ts';
import {
  joinSpawners,
  type NamedSpawner,
  type SpawnerSet,
} from '../workloads/servers/spawner-set.ts';
import { createStartHooks, type NamedSpawnHook } from '../workloads/servers/start-hooks.ts';
import { createLimitRules } from '../workloads/servers/time-limits.ts';
import { createUserServers } from '../workloads/servers/user-servers.ts';
import type { ComposedInstances } from './compose-instances.ts';
import type { ComposedOAuth } from './compose-oauth.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

/** The life of users' servers. */
export type ComposedServers = Awaited<ReturnType<typeof composeServers>>;

/** How long it may take until another process reads what was sent to be stored. */
const storingMs = 5_000;
/** How many servers are asked at once whether they answer. */
const parallelProbes = 64;

export async function composeServers(
  { config, database, stores, instance, metrics, log, disposables, hubId }: Foundation,
  deps: {
    readonly plugins: PreparedPlugins;
    readonly site: Site;
    readonly oauth: ComposedOAuth;
    readonly routes: RouteTable;
    readonly spawnHooks: SpawnHooks;
    readonly instances: Pick<ComposedInstances, 'directory' | 'caller' | 'channel'>;
    /** The hub's own environment. */
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly stopsServersAtEnd: () => boolean;
  },
) {
  const { plugins, oauth, spawnHooks } = deps;
  const { Hub, Spawner: spawnerConfig, basePath } = config;
  const isShared = database.dialect === 'postgres';
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(config.directory, path));

  const spawner = await startSpawners({ plugins, config, hubId, log, servers: stores.servers });
  disposables.defer(async () => spawner[Symbol.asyncDispose]?.());

  const hooks: NamedSpawnHook[] = [];
  for (const prepared of plugins.hooks) {
    const { name } = prepared;
    const hook = await startSpawnHook(prepared, { log: createPluginLog(log, { hook: name }) });
    disposables.defer(async () => hook[Symbol.asyncDispose]?.());
    hooks.push({ name, hook });
  }
  const timeoutMs = spawnerConfig.hook_timeout * 1000;
  const startHooks = createStartHooks({ hooks, timeoutMs, log });

  const routes = createServerRoutes({
    routes: deps.routes,
    basePath,
    origins: deps.site.origins,
    access: spawnerConfig.access === 'gateway' ? 'gateway' : 'server',
    forwarding: forwardingOf(spawnerConfig),
  });
  const events: UnitEvents = {
    onReady(server, url) {
      limitWatch.runSoon();
      return routes.open(server, url);
    },
    onUnavailable: (server) => routes.close(server),
    async onGone(server) {
      await stores.accessTokens.revokeByServer(server.id);
      await spawnHooks.afterStop(server.userName, server.name);
      await startHooks.afterStop(identityOf(server));
    },
    onStartEnded: (outcome, seconds) => metrics.countSpawn(outcome, seconds),
  };

  const addressReports = createAddressReports();
  const planner = createLaunchPlanner({
    config,
    origins: deps.site.origins,
    apiUrl: deps.site.apiUrl,
    environment: deps.environment,
    spawner,
    profileOptionsOf: (profile) =>
      plugins.spawners
        .find(({ profileOptions }) => profileOptions.has(profile))
        ?.profileOptions.get(profile),
    groups: stores.groups,
    tokenIssuer: oauth.tokenIssuer,
    roles: stores.roles,
    beforeSpawn: spawnHooks.beforeSpawn,
    hooks: startHooks,
    addressReports,
    probe: createBoundedProbe(parallelProbes),
    resolvePath,
  });
  const lifecycle = disposables.use(
    createServerLifecycle({
      database,
      store: stores.servers,
      instance,
      isShared,
      canTakeOver: plugins.spawners.length > 0,
      spawner,
      planResume: planner.planResume,
      events,
      routes,
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
    isConfigured: plugins.spawners.length > 0,
    users: stores.users,
    store: stores.servers,
    lifecycle,
    spawner,
    groups: stores.groups,
    planLaunch: planner.plan,
    accessTokens: stores.accessTokens,
    decideAccount: createDecideAccount(
      spawnerConfig,
      stores.systemAccounts,
      spawner.needsAccounts === true,
    ),
    accounts: stores.systemAccounts,
    beforeStop: spawnHooks.beforeStop,
    requireNoMaintenance: stores.notices.requireNoMaintenance,
    audit: database.audit,
    async recordUse(serverId) {
      activityLog.noteServer(serverId);
      await activityLog.flush();
    },
    onStopAtLimit: metrics.countStopAtLimit,
    log,
  });

  const { directory, caller, channel } = deps.instances;
  const remoteProgress = createRemoteProgress({
    directory,
    caller,
    lifecycle,
    urlOf: (server) => deps.site.origins.urlOf(servers.prefixOf(server)),
  });
  channel.handle(progressOperation, async (question) =>
    answerProgress((serverId) => lifecycle.unitOf(serverId)?.progress, question),
  );

  const output = createServerOutput({
    lifecycle,
    store: stores.servers,
    here: instance,
    directory,
    caller,
  });
  channel.handle(serverOutputOperation, (question) => answerServerOutput(lifecycle, question));

  channel.handle(addressOperation, (report) => takeAddress(addressReports, report));
  const reportedAddresses = createReportedAddresses({
    reports: addressReports,
    directory,
    caller,
    self: instance,
  });

  const activityLog = disposables.use(
    createActivityLog({
      users: stores.users,
      servers: stores.servers,
      collectTraffic: () => routes.collectTraffic(),
      log,
    }),
  );
  const limitWatch = disposables.use(
    createLimitWatch({
      rules: createLimitRules(spawnerConfig),
      store: createServerLimitsStore(database),
      instanceId: instance.id,
      warningMs: spawnerConfig.limit_warning_seconds * 1000,
      activityLagMs: isShared ? flushIntervalMs + storingMs : 0,
      flushActivity: () => activityLog.flush(),
      // A start may have set it off, of which its user is the actor.
      stop: (serverId, reason) => actAsHub(() => servers.stopAtLimit(serverId, reason)),
      log,
    }),
  );
  return {
    spawner,
    lifecycle,
    servers,
    routes,
    output,
    activityLog,
    reportedAddresses,
    remoteProgress,
  };
}

/** Starts every spawner of the configuration; what was started is closed again when one does not start. */
export async function startSpawners({
  plugins,
  config,
  hubId,
  servers,
  log,
}: {
  readonly plugins: Pick<PreparedPlugins, 'spawners'>;
  readonly config: Config;
  readonly hubId: string;
  readonly servers: Pick<ServerStore, 'activeAmong'>;
  readonly log: Logger;
}): Promise<SpawnerSet> {
  const runtimeDirectory = resolve(config.directory, config.Hub.log_dir, 'servers');
  const started: NamedSpawner[] = [];
  try {
    for (const prepared of plugins.spawners) {
      const { name } = prepared;
      const spawner = await startSpawner(prepared, {
        log: createPluginLog(log, { spawner: name }),
        runtimeDirectory,
        hubId,
        activeServers: (serverIds) => servers.activeAmong(serverIds),
      });
      started.push({ name, spawner });
    }
  } catch (error) {
    await Promise.allSettled(started.map(({ spawner }) => spawner[Symbol.asyncDispose]?.()));
    throw error;
  }
  const [first = { name: '', spawner: noSpawner }, ...others] = started;
  return joinSpawners([first, ...others], (name) => {
    const profile = config.Spawner.profiles.find((each) => each.name === name);
    return started.length === 0 ? first.name : spawnerOf(profile, config.spawners);
  });
}
