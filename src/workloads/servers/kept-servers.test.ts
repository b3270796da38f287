import { describe, expect, test, vi } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import {
  createLimitWorld,
  hour,
  me,
  minute,
  untilStopped,
} from '../../../test/support/limit-world.ts';
import { until } from '../../../test/support/test-hub.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createServerLimitsStore } from './server-row-store.ts';

describeEachDatabase('servers beyond the idle timeout', (open) => {
  describe('a server that is paused', () => {
    const pause = async (database: HubDatabase, settings?: object) => {
      const world = await createLimitWorld(database, settings);
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
        ['server-ann', performance.now()],
        ['server-bob', performance.now()],
      ];
      await until(async () => !(await world.isPaused('ann')), 'it goes on');
      world.uses = [];
      await watch.run();
      await until(async () => (await world.isPaused('ann')) === true, 'it is paused again');
      expect(world.woken).toEqual(['server-ann']);
      await untilStopped(watch);
    });

    test('goes on at once when it was paused while servers were listed', async () => {
      const world = await createLimitWorld(await open());
      world.pauses = true;
      await world.add('ann');
      await using watch = world.watchOf();
      await watch.run();
      await world.age('ann', { used: 61 * minute });
      const [pausing, listing, listed] = Array.from({ length: 3 }, () =>
        Promise.withResolvers<void>(),
      );
      world.pausing = () => pausing!.promise;
      await watch.run();
      world.listed = () => {
        listing!.resolve();
        return listed!.promise;
      };
      const look = watch.run();
      await listing!.promise;
      pausing!.resolve();
      await until(async () => world.looks > 0, 'it is paused');
      listed!.resolve();
      await look;
      world.uses = [['server-ann', performance.now()]];
      await until(async () => !(await world.isPaused('ann')), 'it goes on');
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
      world.uses = [['server-ann', performance.now()]];
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
      const world = await createLimitWorld(database, settings);
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
});
