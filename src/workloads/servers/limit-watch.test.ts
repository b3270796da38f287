import { describe, expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import {
  createLimitWorld,
  hour,
  me,
  minute,
  untilStopped,
} from '../../../test/support/limit-world.ts';
import { watchStatements } from '../../../test/support/statements.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { HubError } from '../../platform/errors.ts';
import { createServerOwnership } from './server-ownership-store.ts';
import { createServerLimitsStore } from './server-row-store.ts';

describeEachDatabase('time limits', (open, dialect) => {
  test('what was not used as long as the idle timeout says is stopped once, the rest is not', async () => {
    const world = await createLimitWorld(await open());
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
    const world = await createLimitWorld(await open(), { max_age_seconds: 3600 });
    await world.add('old', { started: 30 * minute });
    await using watch = world.watchOf();
    await watch.run();
    await world.age('old', { born: 61 * minute });
    await watch.run();
    expect(world.stopped).toEqual(['old max_age']);
  });

  test('a script that sends something each minute keeps a server no longer than its longest age', async () => {
    const limits = { idle_timeout_seconds: 600, max_age_seconds: 3600 };
    const world = await createLimitWorld(await open(), limits);
    await world.add('eve', { started: 0 });
    await using watch = world.watchOf();
    await watch.run();
    for (let passed = 1; passed <= 60; passed++) {
      expect(world.stopped).toEqual([]);
      world.pass(minute);
      await world.store.recordActivity(new Map([['server-eve', new Date(world.now())]]));
      await watch.run();
    }
    expect(world.stopped).toEqual(['eve max_age']);
  });

  test('a server that works as it is asked at the last moment goes on, up to its longest age', async () => {
    const limits = { idle_timeout_seconds: 3600, max_age_seconds: 86_400 };
    const world = await createLimitWorld(await open(), limits);
    for (const name of ['waits', 'rests', 'old']) await world.add(name);
    await using watch = world.watchOf();
    await watch.run();
    world.working.add('server-waits').add('server-old');
    for (const name of ['waits', 'rests']) await world.age(name, { used: 61 * minute });
    await world.age('old', { used: 61 * minute, born: 25 * hour });
    await watch.run();
    expect(world.stopped.toSorted()).toEqual(['old max_age', 'rests idle_timeout']);
    expect(await world.left('waits')).toBe(60);
  });

  test('only servers that run at this instance are stopped', async () => {
    const world = await createLimitWorld(await open());
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
    const world = await createLimitWorld(database);
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

  test('what another process saw is waited for, and each server is stopped by its own', async () => {
    const world = await createLimitWorld(await open());
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
    const world = await createLimitWorld(database, settings);
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
      const world = await createLimitWorld(await open(), {
        idle_timeout_seconds: 3600,
        max_age_seconds: 6 * 3600,
      });
      await world.add('ann', { started: hour, used: 20 * minute });
      await using watch = world.watchOf();
      await watch.run();
      expect(await world.left('ann')).toBe(40);
    });

    test('no one is stopped before their use can be told, nor without a warning', async () => {
      const world = await createLimitWorld(await open(), {
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
      const world = await createLimitWorld(await open());
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
      const world = await createLimitWorld(await open());
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
    const world = await createLimitWorld(await open(), {
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
    const world = await createLimitWorld(await open());
    await world.add('eve', { used: -40 * hour });
    await using watch = world.watchOf();
    await watch.run();
    expect(await world.left('eve')).toBe(60);
  });

  test('limits that are taken away end what is stored of them', async () => {
    const world = await createLimitWorld(await open());
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
    const world = await createLimitWorld(database);
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
    const world = await createLimitWorld(database, {
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
    // Adding them all can take a minute.
    await world.age('user-1999', { used: 0 });
    expect(await world.left('user-1999')).toBe(20);
  });
});
