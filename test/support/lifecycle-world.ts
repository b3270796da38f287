import { pino } from 'pino';
import { afterEach } from 'vitest';
import { createUserStore, type User } from '../../src/identity/users/user-store.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import type { Spawner } from '../../src/plugin/host/spawner.ts';
import type { Server } from '../../src/workloads/servers/server.ts';
import {
  createServerLifecycle,
  type ServerLifecycle,
} from '../../src/workloads/servers/server-lifecycle.ts';
import type { LifecycleLimits } from '../../src/workloads/servers/server-ownership-store.ts';
import type { LaunchPlan } from '../../src/workloads/servers/server-start.ts';
import { createServerStore, type ServerStore } from '../../src/workloads/servers/server-store.ts';
import type { UnitEvents } from '../../src/workloads/servers/unit-events.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';
import { createHeldLease, endLease, enterInstance, type HeldLease } from './instances.ts';
import { createScriptedSpawner, type ScriptedSpawner } from './scripted-spawner.ts';

/** The servers of one instance of the hub, with a spawner that a test scripts. */
export interface LifecycleWorld {
  readonly store: ServerStore;
  readonly database: HubDatabase;
  readonly spawner: ScriptedSpawner;
  readonly lifecycle: ServerLifecycle;
  /** What happened outside, in order: `open`, `close`, `gone` with the user's name, and outcomes. */
  readonly happened: string[];
  readonly routes: Set<string>;
  readonly plan: (server: Server) => () => LaunchPlan;
  /** What the clean-up after a server waits for; nothing unless a test says so. */
  gone: () => Promise<void>;
  /** Has the end of a run written; with nothing beside it unless a test says so. */
  endRun: UnitEvents['endRun'];
  /** What readiness waits for; nothing unless a test says so. */
  readiness: (signal: AbortSignal) => Promise<void>;
  startTimeoutMs: number;
  addServer(userName: string, serverName?: string): Promise<Server>;
  stored(server: Server): Promise<Server>;
  start(server: Server): Promise<void>;
  stop(server: Server): Promise<void>;
  readonly lease: HeldLease;
  /** Resolves when the database knows of the lease. */
  readonly entered: Promise<void>;
  /** Another process of the hub over the same database and spawner. */
  another(options?: LifecycleWorldOptions): LifecycleWorld;
  /** Forgets all that only memory holds, as if the process had been killed. */
  kill(): void;
  /** The next hub after this one was killed. */
  next(options?: LifecycleWorldOptions): Promise<LifecycleWorld>;
}

export interface LifecycleWorldOptions {
  readonly limits?: Partial<LifecycleLimits>;
  readonly stopsServersAtEnd?: boolean;
  readonly pollIntervalMs?: number;
  readonly machineId?: string;
  readonly spawner?: ScriptedSpawner;
  /** How to go on with a start of an earlier hub. */
  readonly planResume?: (server: Server) => LaunchPlan | undefined;
}

export const silentLog = pino({ level: 'silent' });
const worlds: LifecycleWorld[] = [];
afterEach(async () => {
  for (const { lifecycle } of worlds.splice(0)) await lifecycle[Symbol.asyncDispose]();
});

export function createLifecycleWorld(
  database: HubDatabase,
  options: LifecycleWorldOptions = {},
  spawner = createScriptedSpawner(),
): LifecycleWorld {
  const store = createServerStore(database);
  const users = createUserStore(database);
  const happened: string[] = [];
  const routes = new Set<string>();
  const lease = createHeldLease(crypto.randomUUID(), options.machineId);
  const entered = enterInstance(database, lease);
  entered.catch(() => undefined);
  const lifecycle = createServerLifecycle({
    database,
    store,
    instance: lease,
    isShared: true,
    canTakeOver: true,
    spawner: spawner as Spawner,
    ...(options.planResume !== undefined && { planResume: options.planResume }),
    routes: {
      routeToRemote(servers) {
        for (const route of [...routes]) if (route.includes('@')) routes.delete(route);
        for (const [{ userName, name }, { url, via }] of servers) {
          routes.add(`${userName}/${name}@${via ?? url}`);
        }
      },
      isOpen: ({ userName, name }) =>
        [...routes].some((route) => route.split('@')[0] === `${userName}/${name}`),
    },
    events: {
      onReady({ userName, name }, { url }) {
        happened.push(`open ${userName}/${name}`);
        routes.add(`${userName}/${name}`);
        return `/user/${userName}/${name}${url.slice(0, 0)}`;
      },
      onUnavailable({ userName, name }) {
        happened.push(`close ${userName}/${name}`);
        routes.delete(`${userName}/${name}`);
      },
      async onGone({ userName, name }) {
        await world.gone();
        happened.push(`gone ${userName}/${name}`);
      },
      endRun: (server, endedAtMs, write) => world.endRun(server, endedAtMs, write),
      onStartEnded: (outcome) => happened.push(outcome),
    },
    limits: { concurrentSpawns: 0, activeServers: 0, ...options.limits },
    pollIntervalMs: options.pollIntervalMs ?? 1_000_000,
    stopGraceMs: 100,
    stopsServersAtEnd: () => options.stopsServersAtEnd ?? false,
    log: silentLog,
  });
  const world: LifecycleWorld = {
    store,
    database,
    spawner,
    lifecycle,
    happened,
    routes,
    gone: async () => undefined,
    async endRun(_server, _endedAtMs, write) {
      await write(database.kysely);
    },
    readiness: async () => undefined,
    startTimeoutMs: 60_000,
    lease,
    entered,
    async addServer(userName, serverName = '') {
      await entered;
      const user: User =
        (await users.findByName(userName)) ?? (await users.create({ name: userName }));
      return store.ensure(user.id, serverName);
    },
    async stored({ userName, name }) {
      const server = await store.find(userName, name);
      if (server === undefined) throw new Error('the server is not stored');
      return server;
    },
    plan: (server) => () => ({
      startTimeoutMs: world.startTimeoutMs,
      userOptions: { size: 1 },
      launch: (callbacks) =>
        spawner.start(
          createSpawnRequest({
            ...callbacks,
            serverId: server.id,
            userName: server.userName,
            serverName: server.name,
          }),
        ),
      waitUntilReady: (_server, signal) => world.readiness(signal),
    }),
    async start(server) {
      const { ready } = await lifecycle.start(server, world.plan(server));
      await ready;
    },
    async stop(server) {
      const { stopped } = await lifecycle.stop(await world.stored(server));
      await stopped;
    },
    another: (more = {}) => createLifecycleWorld(database, more, more.spawner ?? spawner),
    kill() {
      worlds.splice(worlds.indexOf(world), 1);
      spawner.forget();
    },
    async next(more = {}) {
      await endLease(database, lease.id);
      const world = createLifecycleWorld(database, more, spawner);
      await world.entered;
      return world;
    },
  };
  worlds.push(world);
  return world;
}

/** A promise in the hands of the test, and whether anybody waits for it. */
export function hold() {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isReached = false;
  return {
    release: resolve,
    isReached: () => isReached,
    wait: () => {
      isReached = true;
      return promise;
    },
  };
}

/** Rejects when the signal is aborted, as a well-behaved wait does. */
export async function abortable(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('aborted')));
  if (signal.aborted) reject(new Error('aborted'));
  await Promise.race([wait, promise]);
}
