import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease } from '../../../test/support/instances.ts';
import {
  abortable,
  createLifecycleWorld,
  hold,
  type LifecycleWorld,
} from '../../../test/support/lifecycle-world.ts';
import { until } from '../../../test/support/test-hub.ts';
import type { Server } from './server.ts';
import type { LaunchPlan } from './server-start.ts';

/** A job in the queue of an engine: whichever instance waits for it gets the one server. */
function createJob() {
  const queue = hold();
  const submitted: string[] = [];
  const plan = (server: Server): LaunchPlan => ({
    startTimeoutMs: 60_000,
    userOptions: {},
    async launch({ keepState, onProgress, signal }) {
      submitted.push(server.id);
      await keepState({ job: 7 });
      onProgress({ phase: 'pending', progress: 10, message: 'third in the queue' });
      await abortable(queue.wait(), signal);
      return { url: 'http://127.0.0.1:9', state: { job: 7, runs: true } };
    },
    waitUntilReady: async () => undefined,
  });
  const planResume = (server: Server): LaunchPlan | undefined =>
    server.spawnerState['job'] === 7 ? plan(server) : undefined;
  return { plan, planResume, submitted, begin: queue.release, isAwaited: queue.isReached };
}

describeEachDatabase('a start that waits in the queue of its engine', (open) => {
  async function createTwo() {
    const job = createJob();
    const world = createLifecycleWorld(await open(), { planResume: job.planResume });
    const heir = world.another({ planResume: job.planResume });
    await heir.lifecycle.restore();
    const server = await world.addServer('ann');
    await heir.addServer('ann');
    const { ready } = await world.lifecycle.start(server, () => job.plan(server));
    ready.catch(() => undefined);
    await until(
      async () => (await world.stored(server)).spawnerState['job'] === 7,
      'its place in the queue is stored',
    );
    // Others read what is stored before the start itself knows.
    await until(job.isAwaited, 'the start waits for its job');
    return { job, world, heir, server };
  }

  async function expectToRunAt(heir: LifecycleWorld, server: Server): Promise<void> {
    await until(() => heir.routes.has('ann/'), 'it runs at the heir');
    expect(await heir.stored(server)).toMatchObject({
      state: 'running',
      instance: { id: heir.lease.id },
      failure: undefined,
    });
    expect(heir.spawner.calls).toEqual([]);
  }

  test.each([
    ['is killed', async (world: LifecycleWorld) => world.kill()],
    ['stops', (world: LifecycleWorld) => world.lifecycle[Symbol.asyncDispose]()],
  ])('keeps its place at another instance when its own one %s', async (_, end) => {
    const { job, world, heir, server } = await createTwo();
    await end(world);
    await endLease(world.database, world.lease.id);
    await until(() => job.submitted.length === 2, 'the heir waits for the same job');
    job.begin();
    await expectToRunAt(heir, server);
  });

  test('is left to the one that took it over by an instance that comes back', async () => {
    const { job, world, heir, server } = await createTwo();
    await endLease(world.database, world.lease.id);
    await until(() => job.submitted.length === 2, 'the heir waits for the same job');
    await endLease(world.database, world.lease.id, new Date(8_640_000_000_000_000));
    world.lease.setHeld(true);
    await until(() => [...world.lifecycle.units()].length === 0, 'it is left to the heir');
    job.begin();
    await expectToRunAt(heir, server);
    expect(world.happened).toEqual([]);
    await until(() => world.routes.has('ann/@http://127.0.0.1:9'), 'it is led to');
  });

  test('is left to the one that took it over when the job begins before its former instance knows', async () => {
    const { job, world, heir, server } = await createTwo();
    const { listActive } = world.store;
    // It does not compare, as while it cannot reach the database.
    world.store.listActive = () => Promise.reject(new Error('not now'));
    await endLease(world.database, world.lease.id);
    await until(() => job.submitted.length === 2, 'the heir waits for the same job');
    job.begin();
    await expectToRunAt(heir, server);
    world.store.listActive = listActive;
    await until(() => [...world.lifecycle.units()].length === 0, 'it is left to the heir');
    expect(world.happened).toEqual([]);
    expect(await heir.stored(server)).toMatchObject({ state: 'running' });
  });

  test('that an instance took over can be cancelled by its user, wherever they ask', async () => {
    const { job, world, heir, server } = await createTwo();
    world.kill();
    await endLease(world.database, world.lease.id);
    await until(() => job.submitted.length === 2, 'the heir waits for the same job');
    const third = world.another();
    await third.addServer('ann');
    const stopped = third.stop(server);
    await stopped;
    expect(await heir.stored(server)).toMatchObject({ state: 'stopped', failure: undefined });
    expect(heir.routes.has('ann/')).toBe(false);
  });
});
