import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { enterInstance } from '../../../test/support/instances.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import { watchStatements } from '../../../test/support/statements.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { monotonicMs } from '../../platform/concurrency/monotonic-clock.ts';
import { spawnerSection } from '../../platform/config/sections-schema.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createLimitWatch, type LimitWatch } from './limit-watch.ts';
import { createServerOwnership } from './server-ownership-store.ts';
import { createServerLimitsStore } from './server-row-store.ts';
import { createServerStore } from './server-store.ts';
import { comingStop, createLimitRules } from './time-limits.ts';

const minute = 60_000;
const hour = 60 * minute;
const me = 'instance-1';

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

async function createWorld(
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
          return { servers, nowMs: nowMs && nowMs + passedMs + aheadMs };
        },
      },
      instanceId,
      warningMs: 5 * minute,
      activityLagMs,
      flushActivity: async () => world.flush(),
      async stop(serverId, reason) {
        if (reason === 'idle_timeout' && world.pauses) {
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
      uses: () => world.uses,
      log: pino({ level: 'silent' }),
      monotonic: () => monotonicMs() + passedMs,
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
    stopped,
    woken,
    /** Whether servers that are idle are paused. */
    pauses: false,
    /** When servers were used, by the monotonic clock. */
    uses: [] as [string, number][],
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
const untilStopped = (watch: LimitWatch) => watch[Symbol.asyncDispose]();

describeEachDatabase('time limits', (open, dialect) => {
  test('what was not used as long as the idle timeout says is stopped once, the rest is not', async () => {
    const world = await createWorld(await open());
    await world.add('idle');
    await world.add('busy');
    await using watch = world.watchOf();
    await watch.run();
    expect(await world.left('idle')).toBe(60);
    await world.age('idle', { used: 61 * minute });
    await world.age('busy', { used: 59 * minute });
    await Promise.all([watch.run(), watch.run()]);
    await watch.run();
    expect(world.stopped).toEqual(['idle idle_timeout']);
    await untilStopped(watch);
    const server = await world.store.findById('server-idle');
    expect(server).toMatchObject({ state: 'stopped', stoppedBy: 'idle_timeout' });
  });

  test('a server is stopped at its longest age, however much it is used', async () => {
    const world = await createWorld(await open(), { max_age_seconds: 3600 });
    await world.add('old', { started: 30 * minute });
    await using watch = world.watchOf();
    await watch.run();
    await world.age('old', { born: 61 * minute });
    await watch.run();
    expect(world.stopped).toEqual(['old max_age']);
  });

  test('only servers that run at this instance are stopped', async () => {
    const world = await createWorld(await open());
    for (const name of ['starting', 'stopping', 'other']) await world.add(name);
    await using watch = world.watchOf();
    await watch.run();
    const ages = { used: 8 * hour };
    await world.age('starting', { ...ages, state: 'starting' });
    await world.age('stopping', { ...ages, state: 'stopping' });
    await world.age('other', { ...ages, instance: 'instance-2' });
    await watch.run();
    expect(world.stopped).toEqual([]);
  });

  test('a server that is used at the last moment goes on', async () => {
    const database = await open();
    const world = await createWorld(database);
    await world.add('late');
    const limits = createServerLimitsStore(database);
    await world.age('late', { used: 2 * hour });
    const { servers } = await limits.list(me, []);
    const found = servers.map((server) => ({ ...server, reason: 'idle_timeout' as const }));
    await world.store.recordActivity(new Map([['server-late', new Date()]]));
    expect(await limits.end(me, found)).toEqual([]);
    // Its age does not change with that.
    const old = found.map((server) => ({ ...server, reason: 'max_age' as const }));
    expect(await limits.end(me, old)).toEqual(['server-late']);
  });

  describe('a server that is paused', () => {
    const pause = async (database: HubDatabase, settings?: object) => {
      const world = await createWorld(database, settings);
      world.pauses = true;
      await world.add('ann');
      const watch = world.watchOf();
      await watch.run();
      await world.age('ann', { used: 61 * minute });
      await watch.run();
      await until(async () => (await world.isPaused('ann')) === true, 'it is paused');
      return { world, watch };
    };

    test('is not stopped for being idle, goes on when it is used, and is paused again', async () => {
      const { world, watch } = await pause(await open());
      await watch.run();
      expect([world.stopped, world.woken, await world.left('ann')]).toEqual([[], [], undefined]);
      world.uses = [
        ['server-ann', monotonicMs()],
        ['server-bob', monotonicMs()],
      ];
      await until(async () => !(await world.isPaused('ann')), 'it goes on');
      world.uses = [];
      await watch.run();
      await until(async () => (await world.isPaused('ann')) === true, 'it is paused again');
      expect(world.woken).toEqual(['server-ann']);
      await untilStopped(watch);
    });

    test('is looked at twice a second, and nothing is once it goes on', async () => {
      using started = vi.spyOn(globalThis, 'setInterval');
      using ended = vi.spyOn(globalThis, 'clearInterval');
      const { world, watch } = await pause(await open());
      const looks = () =>
        started.mock.results.filter(
          ({ value }, index) =>
            started.mock.calls[index]?.[1] === 500 &&
            !ended.mock.calls.some(([timer]) => timer === value),
        ).length;
      await until(async () => looks() === 1, 'it is looked at');
      world.uses = [['server-ann', monotonicMs()]];
      await until(async () => looks() === 0, 'it goes on');
      expect(world.woken).toEqual(['server-ann']);
      await untilStopped(watch);
    });

    test('goes on after a use that another process saw, also at the next hub', async () => {
      const { world, watch } = await pause(await open());
      await untilStopped(watch);
      await world.store.recordActivity(new Map([['server-ann', new Date(Date.now() + 1_000)]]));
      await using next = world.watchOf({});
      await next.run();
      expect([world.woken, await world.isPaused('ann')]).toEqual([['server-ann'], false]);
    });

    test('is stopped at its longest age, and the next run is not paused', async () => {
      const database = await open();
      const limits = { idle_timeout_seconds: 3600, max_age_seconds: 10 * 3600 };
      const { world, watch } = await pause(database, limits);
      await world.age('ann', { born: 11 * hour });
      await watch.run();
      await untilStopped(watch);
      expect(world.stopped).toEqual(['ann max_age']);
      expect(await world.isPaused('ann')).toBe(false);
    });
  });

  describe('a server that its user keeps running', () => {
    const kept = async (database: HubDatabase, settings: object, ms: number) => {
      const world = await createWorld(database, settings);
      await world.add('ann');
      const watch = world.watchOf();
      await watch.run();
      await createServerLimitsStore(database).keepRunning('server-ann', ms);
      return { world, watch };
    };

    test('is not stopped for being idle until then', async () => {
      const { world, watch } = await kept(await open(), { idle_timeout_seconds: 3600 }, 5 * hour);
      await world.age('ann', { used: 3 * hour });
      await watch.run();
      expect([world.stopped, await world.left('ann')]).toEqual([[], 300]);
      world.pass(5 * hour);
      await watch.run();
      // Nobody looked for so long: its use may still be told.
      expect(await world.left('ann')).toBe(10);
      await untilStopped(watch);
    });

    test('is stopped at its longest age all the same', async () => {
      const limits = { idle_timeout_seconds: 3600, max_age_seconds: 10 * 3600 };
      const { world, watch } = await kept(await open(), limits, 5 * hour);
      await watch.run();
      expect(await world.left('ann')).toBe(60);
      await world.age('ann', { born: 11 * hour });
      await watch.run();
      await untilStopped(watch);
      expect(world.stopped).toEqual(['ann max_age']);
    });

    test('is kept as long when the time of day is set, and never longer than allowed', async () => {
      const limits = { idle_timeout_seconds: 3600, keep_running_max_seconds: 6 * 3600 };
      const { world, watch } = await kept(await open(), limits, 5 * hour);
      for (const set of [24 * hour, -24 * hour]) {
        world.setClock(set);
        await watch.run();
        expect(await world.left('ann')).toBe(300);
      }
      await using less = world.watchOf({ ...limits, keep_running_max_seconds: 2 * 3600 });
      await less.run();
      expect(await world.left('ann')).toBe(120);
      await using none = world.watchOf({ ...limits, keep_running_max_seconds: 0 });
      await none.run();
      expect(await world.left('ann')).toBeLessThanOrEqual(60);
      await untilStopped(watch);
    });

    test('goes on when it is kept at the last moment, whatever was read before', async () => {
      const database = await open();
      const { world, watch } = await kept(database, { idle_timeout_seconds: 3600 }, hour);
      await untilStopped(watch);
      const limits = createServerLimitsStore(database);
      const { servers } = await limits.list(me, []);
      await limits.keepRunning('server-ann', 5 * hour);
      await limits.keep(
        servers.map((server) => ({ ...server, keptUntil: null, keptBefore: server.keptUntil })),
      );
      const over = servers.map((server) => ({ ...server, reason: 'idle_timeout' as const }));
      expect(await limits.end(me, over)).toEqual([]);
      expect(await world.left('ann')).toBe(300);
    });
  });

  test('what another process saw is waited for, and each server is stopped by its own', async () => {
    const world = await createWorld(await open());
    await world.add('ann');
    await world.add('bob', { instance: 'instance-2' });
    await using watch = world.watchOf(undefined, { activityLagMs: 5 * minute });
    await using other = world.watchOf(undefined, { instanceId: 'instance-2' });
    await Promise.all([watch.run(), other.run()]);
    await world.age('ann', { used: 63 * minute });
    await world.age('bob', { used: 63 * minute, instance: 'instance-2' });
    await Promise.all([watch.run(), other.run()]);
    expect(world.stopped).toEqual(['bob idle_timeout']);
    await world.age('ann', { used: 66 * minute });
    await Promise.all([watch.run(), other.run()]);
    expect(world.stopped).toEqual(['bob idle_timeout', 'ann idle_timeout']);
  });

  test('limits follow the profile and the groups of the user, also while the server runs', async () => {
    const database = await open();
    const settings = {
      idle_timeout_seconds: 3600,
      profiles: [{ name: 'gpu', idle_timeout_seconds: 1200 }],
      limits_by_group: { staff: { idle_timeout_seconds: 7200 } },
    };
    const world = await createWorld(database, settings);
    await world.add('ann', { options: { profile: 'gpu' } });
    await world.add('bob');
    const groups = createGroupStore(database);
    await createGroup(groups, { name: 'staff' });
    await using watch = world.watchOf();
    await watch.run();
    expect([await world.left('ann'), await world.left('bob')]).toEqual([20, 60]);
    await groups.addMembers('staff', ['ann'], 'api');
    await watch.run();
    expect([await world.left('ann'), await world.left('bob')]).toEqual([120, 60]);
  });

  describe('after a restart or a takeover', () => {
    test('the time goes on from what is stored', async () => {
      const world = await createWorld(await open(), {
        idle_timeout_seconds: 3600,
        max_age_seconds: 6 * 3600,
      });
      await world.add('ann', { started: hour, used: 20 * minute });
      await using watch = world.watchOf();
      await watch.run();
      expect(await world.left('ann')).toBe(40);
    });

    test('no one is stopped before their use can be told, nor without a warning', async () => {
      const world = await createWorld(await open(), {
        idle_timeout_seconds: 3600,
        max_age_seconds: 6 * 3600,
      });
      await world.add('away', { started: 3 * hour, used: 2 * hour });
      await world.add('old', { started: 8 * hour });
      await world.add('working', { started: 3 * hour, used: 2 * hour });
      await using watch = world.watchOf();
      await watch.run();
      expect([await world.left('away'), await world.left('old')]).toEqual([10, 5]);
      // What was worked meanwhile is told as soon as the hub is back.
      await world.store.recordActivity(new Map([['server-working', new Date()]]));
      await watch.run();
      expect(await world.left('working')).toBe(60);
      expect(world.stopped).toEqual([]);
    });

    test('and after the database was away', async () => {
      const world = await createWorld(await open());
      await world.add('ann');
      await using watch = world.watchOf();
      await watch.run();
      await world.age('ann', { used: 2 * hour });
      world.flush = () => {
        throw new HubError('storage_unavailable', 'The database is away.');
      };
      await watch.run();
      world.flush = () => undefined;
      await watch.run();
      expect(world.stopped).toEqual([]);
      expect(await world.left('ann')).toBe(10);
    });

    test('and after a process that was held up', async () => {
      const world = await createWorld(await open());
      await world.add('ann');
      await using watch = world.watchOf();
      await watch.run();
      world.pass(2 * hour);
      await watch.run();
      expect(world.stopped).toEqual([]);
      expect(await world.left('ann')).toBe(10);
    });
  });

  test.for([
    ['forward', 5 * hour],
    ['back', -5 * hour],
  ] as const)('a clock that is set %s stops no one, and keeps no one', async ([, ms]) => {
    const world = await createWorld(await open(), {
      idle_timeout_seconds: 3600,
      max_age_seconds: 6 * 3600,
    });
    await world.add('ann', { started: 2 * hour, used: 0 });
    await using watch = world.watchOf();
    await watch.run();
    world.setClock(ms);
    await watch.run();
    expect(world.stopped).toEqual([]);
    const stored = await world.store.findById('server-ann');
    const born = stored?.limits?.ageFrom?.getTime() ?? 0;
    expect(Math.round((world.now() - born) / minute)).toBe(120);
    // How long it was not used is no longer known.
    expect(await world.left('ann')).toBe(ms > 0 ? 10 : 60);
  });

  test('use that is told ahead of its time keeps a server no longer', async () => {
    const world = await createWorld(await open());
    await world.add('eve', { used: -40 * hour });
    await using watch = world.watchOf();
    await watch.run();
    expect(await world.left('eve')).toBe(60);
  });

  test('limits that are taken away end what is stored of them', async () => {
    const world = await createWorld(await open());
    await world.add('ann');
    await using watch = world.watchOf();
    await watch.run();
    expect(await world.left('ann')).toBe(60);
    await using later = world.watchOf({});
    await later.run();
    expect(await world.left('ann')).toBeUndefined();
  });

  test('a new start begins without what the run before had', async () => {
    const database = await open();
    const world = await createWorld(database);
    await world.add('ann');
    await using watch = world.watchOf();
    await watch.run();
    await world.age('ann', { used: 2 * hour });
    await watch.run();
    await untilStopped(watch);
    const stopped = await world.store.find('ann', '');
    expect(stopped?.stoppedBy).toBe('idle_timeout');
    const ownership = createServerOwnership(database, {
      id: me,
      machineId: 'machine',
      isMachineBound: true,
    });
    const unlimited = { activeServers: 0, concurrentSpawns: 0 };
    expect(await ownership.claim(stopped!, {}, unlimited)).toBe('claimed');
    const { stoppedBy, limits } = (await world.store.find('ann', ''))!;
    expect([stoppedBy, limits]).toEqual([undefined, undefined]);
  });

  test('a look at 2,000 servers is one statement, whatever their limits are', async () => {
    const database = await open();
    const world = await createWorld(database, {
      idle_timeout_seconds: 3600,
      profiles: [{ name: 'gpu', idle_timeout_seconds: 1200 }],
      limits_by_group: { staff: { idle_timeout_seconds: 7200 } },
    });
    const now = Date.now();
    const names = Array.from({ length: 2_000 }, (_, index) => `user-${index}`);
    await database.transaction(async (transaction) => {
      for (let from = 0; from < names.length; from += 500) {
        const some = names.slice(from, from + 500);
        await transaction
          .insertInto('users')
          .values(
            some.map((name) => ({
              id: name,
              name,
              admin: 0,
              invited: 0,
              created_at: now,
              last_activity_at: null,
            })),
          )
          .execute();
        await transaction
          .insertInto('servers')
          .values(
            some.map((name) => ({
              id: `server-${name}`,
              user_id: name,
              name: '',
              display_name: null,
              state: 'running',
              url: null,
              spawner_state: '{}',
              user_options: '{"profile":"gpu"}',
              failure: null,
              created_at: now,
              started_at: now,
              last_activity_at: now,
              instance_id: me,
            })),
          )
          .execute();
      }
    });
    await using watch = world.watchOf();
    await watch.run();
    using statements = watchStatements();
    const seen = await statements.during(async () => {
      await watch.run();
      await watch.run();
    });
    // Those of PostgreSQL are not seen by the watch.
    expect(new Set(seen).size).toBe(dialect === 'sqlite' ? 1 : 0);
    expect(await world.left('user-1999')).toBe(20);
  });
});
