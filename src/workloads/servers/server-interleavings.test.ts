import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  abortable,
  createLifecycleWorld,
  silentLog,
} from '../../../test/support/lifecycle-world.ts';
import { openDatabase } from '../../platform/store/open-database.ts';

test('whatever is asked for in whatever order, in the end what is said is what is there', async () => {
  const command = fc.record({
    what: fc.constantFrom('start', 'stop', 'die', 'poll', 'pause'),
    who: fc.constantFrom(0, 1),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 14 }), fc.scheduler(), async (commands, s) => {
      await using database = await openDatabase('sqlite::memory:', {
        directory: '.',
        log: silentLog,
      });
      const world = createLifecycleWorld(database);
      const { spawner, lifecycle } = world;
      const turn = () => s.schedule(Promise.resolve());
      spawner.script = {
        beforeStart: ({ signal }) => abortable(turn(), signal),
        afterStart: turn,
        beforeStop: turn,
      };
      world.readiness = (signal) => abortable(turn(), signal);
      const servers = [await world.addServer('ann'), await world.addServer('bob')];
      const asked: Promise<unknown>[] = [];
      for (const { what, who } of commands) {
        const server = servers[who]!;
        if (what === 'start') asked.push(world.start(server).catch(() => undefined));
        else if (what === 'stop') asked.push(world.stop(server));
        else if (what === 'die') spawner.die(server.id);
        else if (what === 'poll') asked.push(lifecycle.unitOf(server.id)?.poll() ?? turn());
        else await new Promise(setImmediate);
      }
      let isOver = false;
      const all = Promise.allSettled(asked).then(() => {
        isOver = true;
      });
      while (!isOver) {
        if (s.count() > 0) await s.waitOne();
        else await new Promise(setImmediate);
      }
      await all;
      const isSettled = () =>
        [...lifecycle.units()].every(({ state }) => state === 'running') && s.count() === 0;
      while (!isSettled()) {
        if (s.count() > 0) await s.waitOne();
        else await new Promise(setImmediate);
      }
      for (const server of servers) {
        const isThere = spawner.running.has(server.id);
        expect((await world.stored(server)).state).toBe(isThere ? 'running' : 'stopped');
        expect(world.routes.has(`${server.userName}/`)).toBe(isThere);
        expect(lifecycle.unitOf(server.id)?.state).toBe(isThere ? 'running' : undefined);
      }
      await lifecycle[Symbol.asyncDispose]();
    }),
    { numRuns: 60 },
  );
});
