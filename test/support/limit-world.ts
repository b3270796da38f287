import { pino } from 'pino';
import { createUserStore } from '../../src/identity/users/user-store.ts';
import { spawnerSection } from '../../src/platform/config/sections-schema.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { createLimitWatch, type LimitWatch } from '../../src/workloads/servers/limit-watch.ts';
import { createServerLimitsStore } from '../../src/workloads/servers/server-row-store.ts';
import { createServerStore } from '../../src/workloads/servers/server-store.ts';
import { comingStop, createLimitRules } from '../../src/workloads/servers/time-limits.ts';
import { enterInstance } from './instances.ts';
import { addServer } from './server-rows.ts';

export const minute = 60_000;
export const hour = 60 * minute;
export const me = 'instance-1';

interface Ages {
  /** How long ago it was started and used, in milliseconds. */
  readonly started?: number;
  readonly used?: number;
  /** From when on its age is counted. */
  readonly born?: number;
  readonly state?: string;
  readonly instance?: string;
  readonly options?: object;
}

/** Servers at whose limits a watch looks, whose times are set, and what the watch does to them. */
export async function createLimitWorld(
  database: HubDatabase,
  settings: object = { idle_timeout_seconds: 3600 },
) {
  const users = createUserStore(database);
  const store = createServerStore(database);
  await enterInstance(database, { id: me });
  const stopped: string[] = [];
  const woken: string[] = [];
  let passedMs = 0;
  let aheadMs = 0;
  const now = () => Date.now() + passedMs + aheadMs;
  const limits = createServerLimitsStore(database);
  const watchOf = (config: object = settings, { instanceId = me, activityLagMs = 0 } = {}) =>
    createLimitWatch({
      rules: createLimitRules(spawnerSection.parse(config)),
      store: {
        ...limits,
        async list(...which) {
          const { servers, nowMs } = await limits.list(...which);
          await world.listed();
          return { servers, nowMs: nowMs && nowMs + passedMs + aheadMs };
        },
      },
      instanceId,
      warningMs: 5 * minute,
      activityLagMs,
      flushActivity: async () => world.flush(),
      async lastLook(serverIds) {
        const worked = serverIds.filter((id) => world.working.has(id));
        await store.recordActivity(new Map(worked.map((id) => [id, new Date(now())])));
      },
      async stop(serverId, reason) {
        if (reason === 'idle_timeout' && world.pauses) {
          await world.pausing();
          await limits.setPaused(instanceId, serverId, true);
          return 'paused';
        }
        stopped.push(`${serverId.replace(/^server-/, '')} ${reason}`);
        await store.moveTo(serverId, 'stopping');
        await store.moveTo(serverId, 'stopped');
        return 'stopped';
      },
      async wake(serverId) {
        woken.push(serverId);
        await limits.setPaused(instanceId, serverId, false);
      },
      uses() {
        world.looks += 1;
        return world.uses;
      },
      log: pino({ level: 'silent' }),
      monotonic: () => performance.now() + passedMs,
    });

  /** Sets what is stored of a server. */
  async function age(name: string, { started, used, born, ...rest }: Ages): Promise<void> {
    await database.kysely
      .updateTable('servers')
      .set({
        ...(started !== undefined && { started_at: now() - started }),
        ...(used !== undefined && { last_activity_at: now() - used }),
        ...(born !== undefined && { age_from: now() - born }),
        state: rest.state ?? 'running',
        instance_id: rest.instance ?? me,
        ...(rest.options !== undefined && { user_options: JSON.stringify(rest.options) }),
      })
      .where('id', '=', `server-${name}`)
      .execute();
  }

  const world = {
    watchOf,
    /** Stores what was used. */
    flush: (): void => undefined,
    /** What is waited for before servers that were listed are looked at, and before one is paused. */
    listed: (): Promise<void> | void => undefined,
    pausing: (): Promise<void> | void => undefined,
    /** Servers that say at the last moment that they work. */
    working: new Set<string>(),
    stopped,
    woken,
    /** Whether servers that are idle are paused. */
    pauses: false,
    /** When servers were used, by the monotonic clock. */
    uses: [] as [string, number][],
    /** How often that was asked: only while something is paused. */
    looks: 0,
    age,
    async add(name: string, ages: Ages = {}) {
      const user = await users.create({ name });
      await addServer(database, user.id, 'running', me);
      await database.kysely
        .updateTable('servers')
        .set({ id: `server-${name}` })
        .where('user_id', '=', user.id)
        .execute();
      await age(name, { started: 9 * hour, used: 0, ...ages });
    },
    /** Lets time go by. */
    pass(ms: number) {
      passedMs += ms;
    },
    /** Sets the time of day. */
    setClock(ms: number) {
      aheadMs += ms;
    },
    now,
    async isPaused(name: string) {
      return (await store.findById(`server-${name}`))?.pausedAt !== undefined;
    },
    async left(name: string) {
      const server = await store.findById(`server-${name}`);
      const stop = server && comingStop(server);
      return stop && Math.round((stop.at.getTime() - now()) / minute);
    },
    store,
  };
  return world;
}

/** A look does not wait for the stops that it begins; the end of the watch does. */
export const untilStopped = (watch: LimitWatch) => watch[Symbol.asyncDispose]();
