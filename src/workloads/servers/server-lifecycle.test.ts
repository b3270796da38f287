import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { abortable, createLifecycleWorld, hold } from '../../../test/support/lifecycle-world.ts';
import { until } from '../../../test/support/test-hub.ts';

describeEachDatabase('the life of servers', (open) => {
  test('a start opens the route once the server answers, and a stop closes it before all else', async () => {
    const world = createLifecycleWorld(await open());
    const { lifecycle, spawner, happened } = world;
    const server = await world.addServer('ann');
    const answer = hold();
    world.readiness = answer.wait;
    const { ready } = await lifecycle.start(server, world.plan(server));
    await until(answer.isReached, 'the hub waits for an answer');
    expect(await world.stored(server)).toMatchObject({
      state: 'starting',
      url: 'http://127.0.0.1:10001',
      spawnerState: { generation: 1 },
    });
    expect(happened).toEqual([]);
    const steps = lifecycle.unitOf(server.id)?.progress?.events ?? [];
    expect(steps.map(({ progress }) => progress)).toEqual([0, 60]);

    answer.release();
    await ready;
    expect(await world.stored(server)).toMatchObject({
      state: 'running',
      failure: undefined,
      userOptions: { size: 1 },
    });
    expect(happened).toEqual(['open ann/', 'ready']);

    const stopping = hold();
    spawner.script.beforeStop = stopping.wait;
    const { stopped } = await lifecycle.stop(server);
    expect(happened).toEqual(['open ann/', 'ready', 'close ann/']);
    expect(await world.stored(server)).toMatchObject({ state: 'stopping' });
    stopping.release();
    await stopped;
    expect(await world.stored(server)).toMatchObject({
      state: 'stopped',
      url: undefined,
      spawnerState: {},
      startedAt: undefined,
    });
    expect(happened.at(-1)).toBe('gone ann/');
    expect([...lifecycle.units()]).toEqual([]);
  });

  test('a start that is over leaves nothing waiting for its signal, which would keep it in memory', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    const signals: AbortSignal[] = [];
    const plan = world.plan(server)();
    const { ready } = await world.lifecycle.start(server, () => ({
      ...plan,
      launch(callbacks) {
        signals.push(callbacks.signal);
        return plan.launch(callbacks);
      },
    }));
    await ready;
    expect(signals.map((signal) => getEventListeners(signal, 'abort'))).toEqual([[]]);
  });

  test('starts requested together are one start', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    await Promise.all([world.start(server), world.start(server), world.start(server)]);
    expect(world.spawner.calls).toEqual([`start ${server.id}`]);
    await expect(world.start(server)).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('a start requested while another one is under way shares its end, also a bad one', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    const launch = hold();
    world.spawner.script.beforeStart = async () => {
      await launch.wait();
      throw new Error('no room');
    };
    const first = world.start(server);
    await until(launch.isReached, 'the launch');
    const { ready: second } = await world.lifecycle.start(server, world.plan(server));
    launch.release();
    await expect(first).rejects.toThrow('no room');
    await expect(second).rejects.toThrow('no room');
    expect(await world.stored(server)).toMatchObject({
      state: 'stopped',
      failure: { message: 'no room', output: [] },
    });
    expect(world.happened).toEqual(['close ann/', 'gone ann/', 'failed']);
  });

  test('a stop during the launch cancels it and leaves nothing', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    const launch = hold();
    world.spawner.script.beforeStart = ({ signal }) => abortable(launch.wait(), signal);
    const starting = world.start(server);
    await until(launch.isReached, 'the launch');
    await Promise.all([
      expect(starting).rejects.toMatchObject({ code: 'conflict' }),
      world.stop(server),
      world.stop(server),
    ]);
    expect(await world.stored(server)).toMatchObject({ state: 'stopped', failure: undefined });
    expect(world.spawner.running.size).toBe(0);
    expect(world.happened).toEqual(['close ann/', 'gone ann/', 'cancelled']);
  });

  test('a stop while the server does not answer yet ends what was launched', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    const answer = hold();
    world.readiness = (signal) => abortable(answer.wait(), signal);
    const starting = world.start(server);
    await until(answer.isReached, 'the hub waits for an answer');
    await Promise.all([expect(starting).rejects.toThrow('cancelled'), world.stop(server)]);
    expect(world.spawner.running.size).toBe(0);
    expect(world.routes.size).toBe(0);
    expect(await world.stored(server)).toMatchObject({ state: 'stopped' });
  });

  test('a start during a stop waits for it', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    await world.start(server);
    const stopping = hold();
    world.spawner.script.beforeStop = stopping.wait;
    const { stopped } = await world.lifecycle.stop(server);
    const again = world.start(server);
    const meanwhile = world.start(server);
    stopping.release();
    await Promise.all([stopped, again, meanwhile]);
    expect(world.spawner.calls.map((call) => call.split(' ')[0])).toEqual([
      'start',
      'stop',
      'start',
    ]);
    expect(await world.stored(server)).toMatchObject({ state: 'running' });
    expect(world.routes).toEqual(new Set(['ann/']));
  });

  test('a launch that takes too long is given up, and a server that comes late is ended', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    world.startTimeoutMs = 20;
    // Deaf to the signal: the server is there a good while after everybody gave up.
    world.spawner.script.afterStart = ({ signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', () => setImmediate(resolve)));
    await expect(world.start(server)).rejects.toThrow('did not start within 0.02 seconds');
    expect(world.spawner.running.size).toBe(0);
    expect(await world.stored(server)).toMatchObject({
      failure: { message: 'The server did not start within 0.02 seconds.', output: ['hello'] },
    });
  });

  test('a start that waits in a queue of its engine is not given up, whatever its timeout', async () => {
    const world = createLifecycleWorld(await open(), { limits: { concurrentSpawns: 1 } });
    world.startTimeoutMs = 50;
    const queued = hold();
    world.spawner.script.beforeStart = async ({ onProgress, signal }) => {
      onProgress({ progress: 10, message: 'Waiting.', phase: 'pending', reason: 'Priority' });
      await abortable(queued.wait(), signal);
      onProgress({ progress: 20, message: 'Starting.', phase: 'starting' });
    };
    const server = await world.addServer('ann');
    const { ready } = await world.lifecycle.start(server, world.plan(server));
    await until(queued.isReached, 'it is in the queue');
    const begun = performance.now();
    await until(() => performance.now() - begun > 5 * world.startTimeoutMs, 'the timeout is over');
    expect(world.lifecycle.unitOf(server.id)?.progress?.events.at(-1)).toEqual({
      progress: 10,
      message: 'Waiting.',
      phase: 'pending',
      reason: 'Priority',
    });
    // One that waits is not one of those that start at once.
    delete world.spawner.script.beforeStart;
    await world.start(await world.addServer('bob'));
    queued.release();
    await ready;
  });

  test('the timeout of a start begins again when it leaves the queue, and holds', async () => {
    const world = createLifecycleWorld(await open());
    world.startTimeoutMs = 50;
    world.spawner.script.beforeStart = async ({ onProgress, signal }) => {
      onProgress({ progress: 10, message: 'Waiting.', phase: 'pending' });
      onProgress({ progress: 20, message: 'Booting the node.', phase: 'starting' });
      await abortable(new Promise(() => undefined), signal);
    };
    const server = await world.addServer('ann');
    await expect(world.start(server)).rejects.toThrow(
      'The server did not start within 0.05 seconds. The last step: Booting the node.',
    );
  });

  test('a server whose engine is down counts as running until the engine answers', async () => {
    const world = createLifecycleWorld(await open(), { pollIntervalMs: 10 });
    const server = await world.addServer('ann');
    world.spawner.script.tellsNoExit = true;
    await world.start(server);
    let polls = 0;
    world.spawner.script.poll = async () => {
      polls += 1;
      return { running: 'unknown', reason: 'connect ECONNREFUSED' };
    };
    await until(() => polls > 3, 'it was polled');
    expect(world.routes).toEqual(new Set(['ann/']));
    expect(await world.stored(server)).toMatchObject({ state: 'running' });

    world.spawner.script.poll = async () => ({
      running: false,
      exit: { code: 137, signal: null, reason: 'out of memory at 200 MiB' },
    });
    await until(async () => (await world.stored(server)).state === 'stopped', 'it is stopped');
    expect(String((await world.stored(server)).failure?.message)).toBe(
      'The server ended: out of memory at 200 MiB.',
    );
  });

  test('a server that ends before it answers fails with its last lines', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    world.readiness = (signal) => abortable(new Promise(() => undefined), signal);
    world.spawner.script.afterStart = async ({ onOutput, serverId }) => {
      for (let line = 0; line < 200; line += 1) onOutput(`line ${line}`, 'stdout');
      setImmediate(() => world.spawner.die(serverId, { code: 3, signal: null }));
    };
    await expect(world.start(server)).rejects.toThrow(
      'The server exited (code 3) before it was ready.',
    );
    const { failure } = await world.stored(server);
    expect(failure?.output).toHaveLength(50);
    expect(failure?.output.at(-1)).toBe('line 199');
  });

  test('a server that dies loses its route at once, says why, and can be started again', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    await world.start(server);
    const cleaning = hold();
    world.spawner.script.beforeStop = cleaning.wait;
    world.spawner.die(server.id, { code: null, signal: 'SIGKILL' });
    await until(cleaning.isReached, 'the hub cleans up');
    expect(world.routes.size).toBe(0);
    const again = world.start(server);
    cleaning.release();
    await again;
    expect(world.routes).toEqual(new Set(['ann/']));
    expect(await world.stored(server)).toMatchObject({ state: 'running', failure: undefined });

    delete world.spawner.script.beforeStop;
    world.spawner.die(server.id, { code: 7, signal: null });
    await until(async () => (await world.stored(server)).state === 'stopped', 'it is stopped');
    expect(await world.stored(server)).toMatchObject({
      failure: { message: 'The server ended with exit code 7.' },
    });
  });

  test('the route of a server that has ended is closed while its last lines are still read', async () => {
    const world = createLifecycleWorld(await open());
    const { spawner, happened } = world;
    const end = hold();
    spawner.script.ended = end.wait();
    const server = await world.addServer('ann');
    await world.start(server);
    end.release();
    await until(() => happened.at(-1) === 'close ann/', 'its route is closed');
    expect(world.routes.size).toBe(0);
    spawner.die(server.id, { code: 3, signal: null });
    await until(() => happened.at(-1) === 'gone ann/', 'the end is settled');
    const { state, failure } = await world.stored(server);
    expect([state, String(failure?.message)]).toEqual([
      'stopped',
      'The server ended with exit code 3.',
    ]);
  });

  test('a server whose end only polling can tell is noticed by the next look', async () => {
    const world = createLifecycleWorld(await open(), { pollIntervalMs: 10 });
    world.spawner.script.tellsNoExit = true;
    const server = await world.addServer('ann');
    await world.start(server);
    world.spawner.die(server.id);
    await until(async () => (await world.stored(server)).state === 'stopped', 'it is stopped');
    expect(world.routes.size).toBe(0);
    expect(await world.stored(server)).toMatchObject({
      failure: { message: 'The server is no longer running.' },
    });
  });

  test('a server whose end only polling can tell is noticed when its route is checked', async () => {
    const world = createLifecycleWorld(await open());
    world.spawner.script.tellsNoExit = true;
    const server = await world.addServer('ann');
    await world.start(server);
    await world.lifecycle.checkRoutes();
    expect(world.routes).toEqual(new Set(['ann/']));
    world.spawner.die(server.id);
    await world.lifecycle.checkRoutes();
    expect(world.routes.size).toBe(0);
  });

  test('a server whose address another program has taken is ended at the second look', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    await world.start(server);
    const poll = () => world.lifecycle.unitOf(server.id)?.poll();
    world.spawner.script.foreignProcess = 'pid 812 (thief) holds the port 9000';
    await poll();
    delete world.spawner.script.foreignProcess;
    await poll();
    expect(world.routes.size).toBe(1);
    world.spawner.script.foreignProcess = 'pid 812 (thief) holds the port 9000';
    await poll();
    await poll();
    expect(world.routes.size).toBe(0);
    expect(world.spawner.running.size).toBe(0);
    expect(String((await world.stored(server)).failure?.message)).toBe(
      'Another program has the address of the server: pid 812 (thief) holds the port 9000.',
    );
  });

  test('no more servers start at once, and no more run, than the limits allow', async () => {
    const world = createLifecycleWorld(await open(), {
      limits: { concurrentSpawns: 1, activeServers: 2 },
    });
    const [ann, bob, eve] = await Promise.all(
      ['ann', 'bob', 'eve'].map((name) => world.addServer(name)),
    );
    const launch = hold();
    world.spawner.script.beforeStart = launch.wait;
    const first = world.start(ann!);
    await until(launch.isReached, 'the launch');
    await expect(world.start(bob!)).rejects.toMatchObject({
      code: 'too_many_requests',
      retryAfterSeconds: expect.any(Number),
    });
    launch.release();
    await first;
    await world.start(bob!);
    await expect(world.start(eve!)).rejects.toMatchObject({
      code: 'too_many_requests',
      message: 'As many servers run as this hub allows.',
    });
    await world.stop(ann!);
    await world.start(eve!);
    expect(world.spawner.running.size).toBe(2);
  });

  test('a server whose row is deleted while it starts is ended', async () => {
    const world = createLifecycleWorld(await open());
    const server = await world.addServer('ann');
    const answer = hold();
    world.readiness = answer.wait;
    const starting = world.start(server);
    await until(answer.isReached, 'the hub waits for an answer');
    await world.database.kysely.deleteFrom('servers').execute();
    answer.release();
    await expect(starting).rejects.toMatchObject({ code: 'conflict' });
    expect(world.spawner.running.size).toBe(0);
    expect(world.routes.size).toBe(0);
  });

  test('while an account is changed its servers are down and none starts', async () => {
    const world = createLifecycleWorld(await open());
    const main = await world.addServer('ann');
    const lab = await world.addServer('ann', 'lab');
    const other = await world.addServer('bob');
    await Promise.all([world.start(main), world.start(other)]);
    const launch = hold();
    world.spawner.script.beforeStart = ({ signal }) => abortable(launch.wait(), signal);
    const starting = world.start(lab);
    starting.catch(() => undefined);
    await until(launch.isReached, 'the launch');
    await world.lifecycle.withoutServersOf(main.userId, async () => {
      expect([...world.spawner.running.keys()]).toEqual([other.id]);
      await expect(world.start(main)).rejects.toMatchObject({ code: 'conflict' });
    });
    await expect(starting).rejects.toMatchObject({ code: 'conflict' });
    delete world.spawner.script.beforeStart;
    await world.start(main);
  });
});
