import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { abortable, createLifecycleWorld, hold } from '../../../test/support/lifecycle-world.ts';
import { until } from '../../../test/support/test-hub.ts';
import type { Server } from './server.ts';

describeEachDatabase('servers over a restart of the hub', (open) => {
  test('the next hub goes on with what runs and clears away what does not', async () => {
    const world = createLifecycleWorld(await open());
    const { spawner } = world;
    const names = ['runs', 'died', 'half', 'unwritten', 'ending'];
    const servers = await Promise.all(names.map((name) => world.addServer(name)));
    const [runs, died, half, unwritten, ending] = servers as [
      Server,
      Server,
      Server,
      Server,
      Server,
    ];
    for (const server of [runs, died, ending]) await world.start(server);
    // Killed while one server was answering, one just there, and one about to end.
    world.readiness = () => new Promise(() => undefined);
    world.lifecycle.start(half, world.plan(half)).catch(() => undefined);
    await until(async () => (await world.stored(half)).url !== undefined, 'half is stored');
    const beforeReported = hold();
    spawner.script.afterStart = beforeReported.wait;
    world.lifecycle.start(unwritten, world.plan(unwritten)).catch(() => undefined);
    await until(beforeReported.isReached, 'unwritten is there');
    spawner.script.beforeStop = () => new Promise(() => undefined);
    await world.lifecycle.stop(ending);
    world.kill();
    spawner.script = {};
    spawner.die(died.id);
    spawner.calls.length = 0;

    const next = await world.next();
    const { restored, gone, cleared } = await next.lifecycle.restore();
    expect({ restored, gone }).toEqual({ restored: 1, gone: 4 });
    expect(next.routes).toEqual(new Set(['runs/']));
    // Asked for at once, a server that is being cleared away starts when that is done.
    const again = next.start(half);
    await cleared;
    await again;
    expect([...spawner.running.keys()].sort()).toEqual([runs.id, half.id].sort());
    expect(spawner.calls).toContain(`discard ${unwritten.id}`);
    expect(await next.stored(runs)).toMatchObject({ state: 'running', failure: undefined });
    expect(await next.stored(died)).toMatchObject({
      state: 'stopped',
      failure: { message: 'The server ended while the hub was not running.' },
    });
    expect(await next.stored(unwritten)).toMatchObject({
      state: 'stopped',
      failure: { message: 'The hub stopped while the server was starting or stopping.' },
    });
    // The one that goes on is watched: its end is noticed.
    spawner.die(runs.id);
    await until(async () => (await next.stored(runs)).state === 'stopped', 'its end is noticed');
  });

  test('what many servers left behind is ended at once, and recorded a few at a time', async () => {
    const world = createLifecycleWorld(await open());
    const names = Array.from({ length: 40 }, (_, index) => `user-${index}`);
    const servers = await Promise.all(names.map((name) => world.addServer(name)));
    for (const server of servers) await world.start(server);
    world.kill();
    for (const { id } of servers) world.spawner.die(id);

    const next = await world.next();
    const ends = hold();
    let ending = 0;
    world.spawner.script.beforeStop = () => {
      ending += 1;
      return ends.wait();
    };
    let recording = 0;
    let maxRecording = 0;
    next.gone = async () => {
      recording += 1;
      maxRecording = Math.max(maxRecording, recording);
      // The first waits for another beside it, however slow the machine.
      await until(() => maxRecording > 1, 'two are recorded at once');
      recording -= 1;
    };
    const { cleared } = await next.lifecycle.restore();
    await until(() => ending === servers.length, 'all are being ended');
    ends.release();
    await cleared;
    expect(maxRecording).toBeLessThanOrEqual(4);
    const stored = await Promise.all(servers.map((server) => next.stored(server)));
    expect(new Set(stored.map(({ state }) => state))).toEqual(new Set(['stopped']));
  });

  test('a server about which the spawner cannot tell at the start is looked for again', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    await world.start(server);
    await world.lifecycle[Symbol.asyncDispose]();
    let looks = 0;
    let answers = false;
    world.spawner.script.beforeRestore = async () => {
      looks += 1;
      if (!answers) throw new Error('the engine does not answer');
    };
    const next = await world.next({ pollIntervalMs: 10 });
    await next.lifecycle.restore();
    await until(() => looks > 2, 'it is looked for again');
    // Where the instance that is gone had it may be known still.
    expect(next.routes.has('ann/')).toBe(false);
    answers = true;
    await until(() => next.routes.has('ann/'), 'the server is found');
    expect(await next.stored(server)).toMatchObject({ state: 'running' });
  });

  test('a hub that ends leaves running servers alone and cancels those that start', async () => {
    const world = createLifecycleWorld(await open());
    const [runs, starts] = await Promise.all([world.addServer('ann'), world.addServer('bob')]);
    await world.start(runs);
    world.readiness = (signal) => abortable(new Promise(() => undefined), signal);
    const starting = world.start(starts);
    starting.catch(() => undefined);
    await until(async () => (await world.stored(starts)).url !== undefined, 'bob is launched');
    await world.lifecycle[Symbol.asyncDispose]();
    expect([...world.spawner.running.keys()]).toEqual([runs.id]);
    expect(await world.stored(runs)).toMatchObject({ state: 'running' });
    expect(await world.stored(starts)).toMatchObject({ state: 'stopped', failure: undefined });
    await expect(world.start(starts)).rejects.toMatchObject({ code: 'unavailable' });
    // Nobody writes into a database that may be closed by now.
    world.spawner.die(runs.id);
    expect(await world.stored(runs)).toMatchObject({ state: 'running' });
  });

  test('a hub that is told so ends every server with itself', async () => {
    const world = createLifecycleWorld(await open(), { stopsServersAtEnd: true });
    const servers = await Promise.all(['ann', 'bob'].map((name) => world.addServer(name)));
    await Promise.all(servers.map((server) => world.start(server)));
    await world.lifecycle[Symbol.asyncDispose]();
    expect(world.spawner.running.size).toBe(0);
    expect(await world.store.listActive()).toEqual([]);
  });
});
