import { isAbsolute, join, resolve } from 'node:path';
import type { Logger } from 'pino';
import { actAsHub } from '../platform/audit/actor.ts';
import type { Config } from '../platform/config/config.ts';
import { spawnerOf } from '../platform/config/profile-spawner.ts';
import { createPluginLog } from '../platform/logging/plugin-log.ts';
import { currentTrace } from '../platform/tracing/trace.ts';
import { startSpawner, startSpawnHook } from '../plugin/host/create-plugins.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import { createBoundedProbe } from '../spawning/processes/readiness-probe.ts';
import { createActivityLog, flushIntervalMs } from '../workloads/servers/activity.ts';
import { createAddressReports } from '../workloads/servers/address-reports.ts';
import { appAccessOf } from '../workloads/servers/app-access.ts';
import { createBusyKernels } from '../workloads/servers/busy-kernels.ts';
import { createHomeSpaces, createHomeSpaceWatch } from '../workloads/servers/home-spaces.ts';
import { createLaunchPlanner, identityOf } from '../workloads/servers/launch-plan.ts';
import { createLimitWatch } from '../workloads/servers/limit-watch.ts';
import { openLoads } from '../workloads/servers/loads.ts';
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
import { createScheduledStarts } from '../workloads/servers/scheduled-starts.ts';
import { createScheduledStartsStore } from '../workloads/servers/scheduled-starts-store.ts';
import { createDecideAccount } from '../workloads/servers/server-accounts.ts';
import { createServerLifecycle } from '../workloads/servers/server-lifecycle.ts';
import {
  answerServerOutput,
  createServerOutput,
  serverOutputOperation,
} from '../workloads/servers/server-output.ts';
import { createServerPauses } from '../workloads/servers/server-pauses.ts';
import { createServerRoutes } from '../workloads/servers/server-routes.ts';
import { createServerLimitsStore } from '../workloads/servers/server-row-store.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { createServerUsage } from '../workloads/servers/server-usage.ts';
import { createServerWork } from '../workloads/servers/server-work.ts';
import {
  joinSpawners,
  type NamedSpawner,
  type SpawnerSet,
} from '../workloads/servers/spawner-set.ts';
import { createStartAtLogin } from '../workloads/servers/start-at-login.ts';
import { createStartHooks, type NamedSpawnHook } from '../workloads/servers/start-hooks.ts';
import { createLimitRules } from '../workloads/servers/time-limits.ts';
import type { UnitEvents } from '../workloads/servers/unit-events.ts';
import { createUserServers } from '../workloads/servers/user-servers.ts';
import { type Budgets, createBudgets } from '../workloads/usage/budgets.ts';
import { createLedger } from '../workloads/usage/ledger.ts';
import { createStopOverBudget } from '../workloads/usage/stop-over-budget.ts';
import { grow } from './grow.ts';
import type { Identity } from './identity.ts';

/** How long it may take until another process reads what was sent to be stored. */
const storingMs = 5_000;
/** How many servers are asked at once whether they answer. */
const parallelProbes = 64;

/** The record with users' servers. */
export type Working = Awaited<ReturnType<typeof openWork>>;

/** Users' servers, and how busy all is. */
export const openWork = (identity: Identity, stopsServersAtEnd: () => boolean) =>
  grow(identity)
    .with((hub) => ({ budgets: createBudgets(hub) }))
    .with((hub) => openServers(hub, stopsServersAtEnd))
    .with(openLoads).grown;

async function openServers(
  hub: Identity & { readonly budgets: Budgets },
  stopsServersAtEnd: () => boolean,
) {
  const { config, database, isShared, instance, metrics, log, disposables, plugins } = hub;
  const { accessTokens, serverStore, systemAccounts, spawnHooks, channel } = hub;
  const { Hub, Spawner: spawnerConfig } = config;
  const resolvePath = (path: string) => (isAbsolute(path) ? path : join(config.directory, path));

  const spawner = await startSpawners(hub);
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

  const serverWork = createServerWork({
    idleCores: spawnerConfig.idle_cpu_cores,
    onWork: (serverId) => activityLog.noteServer(serverId),
  });
  const serverRoutes = createServerRoutes({
    ...hub,
    accessOf: (server) => appAccessOf(spawnerConfig, server),
    isMeasured: serverWork.isMeasured,
  });
  const events: UnitEvents = {
    onReady(server, { url, state }) {
      limitWatch.runSoon();
      return serverRoutes.open({ ...server, spawnerState: state }, url);
    },
    onUnavailable(server) {
      serverRoutes.close(server);
      void serverUsage.measure(server.id);
    },
    async onGone(server) {
      await accessTokens.revokeByServer(server.id);
      await spawnHooks.afterStop(server.userName, server.name);
      await startHooks.afterStop(identityOf(server));
    },
    endRun: (server, endedAtMs, write) => ledger.end(server.id, endedAtMs, write),
    onStartEnded(outcome, seconds) {
      metrics.countSpawn(outcome, seconds);
      currentTrace
        .getStore()
        ?.ended('spawn', seconds, { 'hub.outcome': outcome }, outcome === 'failed');
    },
  };

  const limitsStore = createServerLimitsStore(database);
  const addressReports = createAddressReports();
  const planner = createLaunchPlanner({
    ...hub,
    spawner,
    profileOptionsOf: (profile) =>
      plugins.spawners
        .find(({ profileOptions }) => profileOptions.has(profile))
        ?.profileOptions.get(profile),
    beforeSpawn: spawnHooks.beforeSpawn,
    hooks: startHooks,
    addressReports,
    probe: createBoundedProbe(parallelProbes),
    resolvePath,
  });
  const lifecycle = disposables.use(
    createServerLifecycle({
      ...hub,
      store: serverStore,
      canTakeOver: plugins.spawners.length > 0,
      spawner,
      planResume: planner.planResume,
      events,
      routes: serverRoutes,
      limits: {
        concurrentSpawns: Hub.concurrent_spawn_limit,
        activeServers: Hub.active_server_limit,
      },
      pollIntervalMs: spawnerConfig.poll_interval * 1000,
      stopGraceMs: spawnerConfig.stop_timeout * 1000,
      stopsServersAtEnd,
    }),
  );
  const servers = createUserServers({
    ...hub,
    isConfigured: plugins.spawners.length > 0,
    lifecycle,
    spawner,
    planLaunch: planner.plan,
    decideAccount: createDecideAccount(
      spawnerConfig,
      systemAccounts,
      spawner.needsAccounts === true,
    ),
    beforeStop: spawnHooks.beforeStop,
    requireNoMaintenance: hub.notices.requireNoMaintenance,
    requireBudget: hub.budgets.requireBudget,
    async recordUse(serverId) {
      activityLog.noteServer(serverId);
      await activityLog.flush();
    },
    keepRunning: (serverId, ms) => limitsStore.keepRunning(serverId, ms),
    onStopAtLimit: metrics.countStopAtLimit,
  });

  const serverUsage = createServerUsage({ lifecycle, spawner, serverWork });
  const ledger = disposables.use(
    createLedger({
      ...hub,
      lifecycle,
      usageOfServer: serverUsage.of,
      onCounted: createStopOverBudget({ ...hub, servers, limitsStore }),
    }),
  );

  const remoteProgress = createRemoteProgress({
    ...hub,
    lifecycle,
    urlOf: (server) => hub.origins.urlOf(servers.prefixOf(server)),
  });
  channel.handle(progressOperation, async (question) =>
    answerProgress((serverId) => lifecycle.unitOf(serverId)?.progress, question),
  );

  const serverOutput = createServerOutput({
    ...hub,
    lifecycle,
  });
  channel.handle(serverOutputOperation, (question) => answerServerOutput(lifecycle, question));

  channel.handle(addressOperation, (report) => takeAddress(addressReports, report));
  const reportedAddresses = createReportedAddresses({
    ...hub,
    addressReports,
  });

  const activityLog = disposables.use(
    createActivityLog({
      ...hub,
      servers: serverStore,
      collectTraffic: () => serverRoutes.collectTraffic(),
    }),
  );
  const scheduledStarts = disposables.use(
    createScheduledStarts({
      ...hub,
      times: spawnerConfig.start_at,
      store: createScheduledStartsStore(database),
      servers,
    }),
  );
  const startAtLogin = createStartAtLogin({
    ...hub,
    setting: spawnerConfig.start_at_login,
    servers,
  });
  const homeSpaces = createHomeSpaces({ ...hub, spawner });
  disposables.use(createHomeSpaceWatch({ ...hub, spawner, lifecycle }));
  const serverPauses = createServerPauses({
    ...hub,
    lifecycle,
    spawner,
    store: limitsStore,
    count: ledger.count,
  });
  const busyKernels = createBusyKernels({
    serverRoutes,
    onBusy: (id) => activityLog.noteServer(id),
  });
  const limitWatch = disposables.use(
    createLimitWatch({
      rules: createLimitRules(spawnerConfig),
      store: limitsStore,
      instanceId: instance.id,
      warningMs: spawnerConfig.limit_warning_seconds * 1000,
      activityLagMs: isShared ? flushIntervalMs + storingMs : 0,
      flushActivity: () => activityLog.flush(),
      lastLook: busyKernels.lookAt,
      // A start may have set it off, of which its user is the actor.
      stop: (serverId, reason) =>
        actAsHub(async () => {
          const pauses = reason === 'idle_timeout' && spawnerConfig.idle_action === 'pause';
          if (pauses && (await serverPauses.pause(serverId))) return 'paused';
          await servers.stopAtLimit(serverId, reason);
          return 'stopped';
        }),
      wake: (serverId) => actAsHub(() => serverPauses.wake(serverId)),
      uses: serverRoutes.uses,
      log,
    }),
  );
  return {
    spawner,
    lifecycle,
    servers,
    serverRoutes,
    serverUsage,
    serverOutput,
    activityLog,
    busyKernels,
    homeSpaces,
    scheduledStarts,
    startAtLogin,
    reportedAddresses,
    remoteProgress,
    limitsStore,
  };
}

/** Starts every spawner of the configuration; what was started is closed again when one does not start. */
export async function startSpawners({
  plugins,
  config,
  hubId,
  serverStore,
  log,
}: {
  readonly plugins: Pick<PreparedPlugins, 'spawners'>;
  readonly config: Config;
  readonly hubId: string;
  readonly serverStore: Pick<ServerStore, 'activeAmong'>;
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
        activeServers: (serverIds) => serverStore.activeAmong(serverIds),
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
