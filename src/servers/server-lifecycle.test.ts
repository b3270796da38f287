import fc from 'fast-check';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { createSpawnRequest } from '../../test/contract/spawn-request.ts';
import { describeEachDatabase } from '../../test/support/databases.ts';
import { limitPages, setReadOnly } from '../../test/support/faulty-store.ts';
import {
  createHeldLease,
  endLease,
  enterInstance,
  type HeldLease,
} from '../../test/support/instances.ts';
import {
  createScriptedSpawner,
  type ScriptedSpawner,
} from '../../test/support/scripted-spawner.ts';
import { until } from '../../test/support/test-hub.ts';
import { HubError } from '../errors.ts';
import type { Spawner } from '../plugin-host/spawner.ts';
import type { HubDatabase } from '../store/database.ts';
import { openDatabase } from '../store/open-database.ts';
import { createUserStore, type User } from '../users/user-store.ts';
import { type Server, unreachableSince } from './server.ts';
import { createServerLifecycle, type ServerLifecycle } from './server-lifecycle.ts';
import type { LifecycleLimits } from './server-ownership-store.ts';
import type { LaunchPlan } from './server-start.ts';
import { createServerStore, type ServerStore } from './server-store.ts';

interface World {
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
  another(options?: WorldOptions): World;
  /** The next hub after this one was killed. */
  next(options?: WorldOptions): Promise<World>;
}

interface WorldOptions {
  readonly limits?: Partial<LifecycleLimits>;
  readonly stopsServersAtEnd?: boolean;
  readonly pollIntervalMs?: number;
  readonly machineId?: string;
  readonly spawner?: ScriptedSpawner;
}

const log = pino({ level: 'silent' });
const worlds: World[] = [];
afterEach(async () => {
  for (const { lifecycle } of worlds.splice(0)) await lifecycle[Symbol.asyncDispose]();
});

function createWorld(
  database: HubDatabase,
  options: WorldOptions = {},
  spawner = createScriptedSpawner(),
): World {
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
    routes: {
      leadElsewhere(servers) {
        for (const route of [...routes]) if (route.includes('@')) routes.delete(route);
        for (const [{ userName, name }, { url, via }] of servers) {
          routes.add(`${userName}/${name}@${via ?? url}`);
        }
      },
      isOpen: ({ userName, name }) =>
        [...routes].some((route) => route.split('@')[0] === `${userName}/${name}`),
    },
    events: {
      onReady({ userName, name }, url) {
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
      onStartEnded: (outcome) => happened.push(outcome),
    },
    limits: { concurrentSpawns: 0, activeServers: 0, ...options.limits },
    pollIntervalMs: options.pollIntervalMs ?? 1_000_000,
    stopGraceMs: 100,
    stopsServersAtEnd: () => options.stopsServersAtEnd ?? false,
    log,
  });
  const world: World = {
    store,
    database,
    spawner,
    lifecycle,
    happened,
    routes,
    gone: async () => undefined,
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
    another: (more = {}) => createWorld(database, more, more.spawner ?? spawner),
    async next(more = {}) {
      await endLease(database, lease.id);
      const world = createWorld(database, more, spawner);
      await world.entered;
      return world;
    },
  };
  worlds.push(world);
  return world;
}

/** A promise in the hands of the test, and whether anybody waits for it. */
function hold() {
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
async function abortable(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('aborted')));
  if (signal.aborted) reject(new Error('aborted'));
  await Promise.race([wait, promise]);
}

describeEachDatabase('the life of servers', (open) => {
  test('a start opens the route once the server answers, and a stop closes it before all else', async () => {
    const world = createWorld(await open());
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

  test('starts requested together are one start', async () => {
    const world = createWorld(await open());
    const server = await world.addServer('ann');
    await Promise.all([world.start(server), world.start(server), world.start(server)]);
    expect(world.spawner.calls).toEqual([`start ${server.id}`]);
    await expect(world.start(server)).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('a start requested while another one is under way shares its end, also a bad one', async () => {
    const world = createWorld(await open());
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
    const world = createWorld(await open());
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
    const world = createWorld(await open());
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
    const world = createWorld(await open());
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
    const world = createWorld(await open());
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
    const world = createWorld(await open(), { limits: { concurrentSpawns: 1 } });
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
    const world = createWorld(await open());
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
    const world = createWorld(await open(), { pollIntervalMs: 10 });
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
    expect((await world.stored(server)).failure?.message).toBe(
      'The server ended: out of memory at 200 MiB.',
    );
  });

  test('a server that ends before it answers fails with its last lines', async () => {
    const world = createWorld(await open());
    const server = await world.addServer('ann');
    world.readiness = (signal) => abortable(new Promise(() => undefined), signal);
    world.spawner.script.afterStart = async ({ onOutput, serverId }) => {
      for (let line = 0; line < 200; line += 1) onOutput(`line ${line}`, 'stdout');
      setImmediate(() => world.spawner.die(serverId, { code: 3, signal: null }));
    };
    await expect(world.start(server)).rejects.toThrow(
      'The server ended before it answered, with exit code 3.',
    );
    const { failure } = await world.stored(server);
    expect(failure?.output).toHaveLength(50);
    expect(failure?.output.at(-1)).toBe('line 199');
  });

  test('a server that dies loses its route at once, says why, and can be started again', async () => {
    const world = createWorld(await open());
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

  test('a server whose end only polling can tell is noticed by the next look', async () => {
    const world = createWorld(await open(), { pollIntervalMs: 10 });
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

  test('a server whose address another program has taken is ended at the second look', async () => {
    const world = createWorld(await open());
    const server = await world.addServer('ann');
    await world.start(server);
    const poll = () => world.lifecycle.unitOf(server.id)?.poll();
    world.spawner.script.stranger = 'pid 812 (thief) holds the port 9000';
    await poll();
    delete world.spawner.script.stranger;
    await poll();
    expect(world.routes.size).toBe(1);
    world.spawner.script.stranger = 'pid 812 (thief) holds the port 9000';
    await poll();
    await poll();
    expect(world.routes.size).toBe(0);
    expect(world.spawner.running.size).toBe(0);
    expect((await world.stored(server)).failure?.message).toBe(
      'Another program has the address of the server: pid 812 (thief) holds the port 9000.',
    );
  });

  test('no more servers start at once, and no more run, than the limits allow', async () => {
    const world = createWorld(await open(), { limits: { concurrentSpawns: 1, activeServers: 2 } });
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
    const world = createWorld(await open());
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
    const world = createWorld(await open());
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

  test('of two instances that start a server together one does, the other joins it', async () => {
    const world = createWorld(await open());
    const rival = world.another();
    const server = await world.addServer('ann');
    await rival.addServer('ann');
    await Promise.all([world.start(server), rival.start(server)]);
    expect(world.spawner.calls).toEqual([`start ${server.id}`]);
    expect(await world.stored(server)).toMatchObject({ state: 'running' });
    await expect(rival.start(await world.stored(server))).rejects.toMatchObject({
      code: 'bad_request',
      message: 'The server is already running.',
    });
    // Either of them can be asked to stop it.
    const idle = [world, rival].find(({ lifecycle }) => [...lifecycle.units()].length === 0);
    await idle?.stop(server);
    expect(world.spawner.running.size).toBe(0);
    expect(await world.stored(server)).toMatchObject({ state: 'stopped', instance: undefined });
  });

  test('a start at another instance is joined to its bad end too', async () => {
    const world = createWorld(await open());
    const rival = world.another();
    const server = await world.addServer('ann');
    await rival.addServer('ann');
    const launch = hold();
    world.spawner.script.beforeStart = async () => {
      await launch.wait();
      throw new Error('no room');
    };
    const first = world.start(server);
    await until(launch.isReached, 'the launch');
    const { ready } = await rival.lifecycle.start(await world.stored(server), world.plan(server));
    launch.release();
    await expect(first).rejects.toThrow('no room');
    await expect(ready).rejects.toMatchObject({ code: 'upstream_failed', message: 'no room' });
  });

  test('limits hold exactly for all instances together', async () => {
    const limits = { activeServers: 5 };
    const world = createWorld(await open(), { limits });
    const others = [world.another({ limits }), world.another({ limits })];
    const all = [world, ...others];
    const servers = await Promise.all(
      Array.from({ length: 12 }, (_, index) => all[index % 3]!.addServer(`user-${index}`)),
    );
    const outcomes = await Promise.allSettled(
      servers.map((server, index) => all[index % 3]!.start(server)),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    expect(world.spawner.running.size).toBe(5);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'too_many_requests' });
    }
  });

  test('without its lease an instance starts nothing', async () => {
    const database = await open();
    const world = createWorld(database);
    const server = await world.addServer('ann');
    world.lease.setHeld(false);
    await expect(world.start(server)).rejects.toMatchObject({ code: 'unavailable' });
    // Woken up after a long sleep it may still believe in its lease; the database knows better.
    world.lease.setHeld(true);
    await endLease(database, world.lease.id);
    await expect(world.start(server)).rejects.toMatchObject({ code: 'unavailable' });
    expect(world.spawner.calls).toEqual([]);
  });

  test('visitors are led to the servers of other instances as long as these run them', async () => {
    const database = await open();
    const world = createWorld(database);
    const beside = world.another();
    const away = world.another({ machineId: 'elsewhere' });
    for (const each of [beside, away]) await each.addServer('ann');
    const server = await world.addServer('ann');
    await world.start(server);
    await until(() => beside.routes.size + away.routes.size === 2, 'the others lead to it');
    expect(beside.routes).toEqual(new Set(['ann/@http://127.0.0.1:10001']));
    expect(away.routes).toEqual(new Set([`ann/@${world.lease.id}`]));
    expect(away.lifecycle.reaches(server)).toBe(true);
    await world.stop(server);
    await until(() => beside.routes.size + away.routes.size === 0, 'they lead to it no more');
  });

  test('an instance leads to the servers of the others as soon as it has started', async () => {
    const world = createWorld(await open());
    await world.start(await world.addServer('ann'));
    const other = world.another();
    await other.lifecycle.restore();
    expect([...other.routes]).toEqual(['ann/@http://127.0.0.1:10001']);
  });

  test('servers of an instance that is gone go on at another one of its machine', async () => {
    const database = await open();
    const world = createWorld(database);
    const heir = world.another();
    await heir.lifecycle.restore();
    const [runs, died] = await Promise.all(['runs', 'died'].map((name) => world.addServer(name)));
    await heir.addServer('runs');
    for (const server of [runs!, died!]) await world.start(server);
    worlds.splice(worlds.indexOf(world), 1);
    world.spawner.forget();
    world.spawner.die(died!.id);
    expect(await heir.stored(runs!)).toMatchObject({ instance: { id: world.lease.id } });
    await endLease(database, world.lease.id);
    await until(() => heir.routes.has('runs/'), 'the heir has it');
    await until(async () => (await heir.stored(died!)).state === 'stopped', 'the other is stopped');
    expect(await heir.stored(runs!)).toMatchObject({
      state: 'running',
      instance: { id: heir.lease.id, isLive: true },
    });
    expect(heir.happened).toContain('gone died/');
    // It is watched as if the heir had started it.
    world.spawner.die(runs!.id);
    await until(async () => (await heir.stored(runs!)).state === 'stopped', 'its end is noticed');
  });

  test('of several heirs each server has one', async () => {
    const database = await open();
    const world = createWorld(database);
    const heirs = [world.another(), world.another()];
    for (const heir of heirs) await heir.lifecycle.restore();
    const servers = await Promise.all(
      Array.from({ length: 120 }, (_, index) => world.addServer(`user-${index}`)),
    );
    for (const heir of heirs) await heir.addServer('user-0');
    for (const server of servers) await world.start(server);
    worlds.splice(worlds.indexOf(world), 1);
    world.spawner.forget();
    await endLease(database, world.lease.id);
    const led = () => heirs.map(({ routes }) => [...routes].filter((each) => !each.includes('@')));
    await until(() => led().flat().length >= 120, 'all are taken over');
    expect(new Set(led().flat()).size).toBe(120);
    expect(led().flat()).toHaveLength(120);
    expect(world.spawner.running.size).toBe(120);
  });

  test('a server on a machine whose instance is away is unreachable, and comes back with it', async () => {
    const database = await open();
    const world = createWorld(database);
    const other = world.another({ machineId: 'elsewhere' });
    const server = await world.addServer('ann');
    await other.addServer('ann');
    await world.start(server);
    const since = new Date('2026-03-04T05:06:07Z');
    await endLease(database, world.lease.id, since);
    await until(() => other.routes.size === 0, 'nothing leads to it');
    const stored = await other.stored(server);
    expect(unreachableSince(stored)).toEqual(since);
    expect(stored).toMatchObject({ state: 'running', url: expect.any(String) });
    expect(other.happened).toEqual([]);
    await expect(other.start(stored)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('since 2026-03-04 05:06:07 UTC'),
    });
    await endLease(database, world.lease.id, new Date(8_640_000_000_000_000));
    await until(() => other.routes.size === 1, 'it is back');
    expect(unreachableSince(await other.stored(server))).toBeUndefined();
  });

  test('an unreachable server can be given up and started elsewhere; what is left of it ends', async () => {
    const database = await open();
    const world = createWorld(database);
    const other = world.another({ machineId: 'elsewhere', spawner: createScriptedSpawner() });
    const server = await world.addServer('ann');
    await other.addServer('ann');
    await world.start(server);
    await endLease(database, world.lease.id);
    await other.stop(server);
    expect(other.happened).toEqual(['gone ann/']);
    await other.start(await other.stored(server));
    expect(other.spawner.running.size).toBe(1);
    expect(world.spawner.running.size).toBe(1);

    await endLease(database, world.lease.id, new Date(8_640_000_000_000_000));
    world.lease.setHeld(true);
    await until(() => world.spawner.running.size === 0, 'the one given up has ended');
    expect(other.spawner.running.size).toBe(1);
    expect(await other.stored(server)).toMatchObject({
      state: 'running',
      instance: { id: other.lease.id },
    });
    // The token of the new one was left alone.
    expect(world.happened).not.toContain('gone ann/');
  });

  test('an instance that comes back leaves alone what another one of its machine took over', async () => {
    const database = await open();
    const world = createWorld(database);
    const heir = world.another();
    await heir.lifecycle.restore();
    const server = await world.addServer('ann');
    await heir.addServer('ann');
    await world.start(server);
    await endLease(database, world.lease.id);
    await until(() => heir.routes.has('ann/'), 'the heir has it');
    await endLease(database, world.lease.id, new Date(8_640_000_000_000_000));
    world.lease.setHeld(true);
    await until(() => [...world.lifecycle.units()].length === 0, 'it is let be');
    expect(world.spawner.calls).toEqual([`start ${server.id}`]);
    await until(() => world.routes.has('ann/@http://127.0.0.1:10001'), 'it is led to as another');
  });

  test('a server that can be polled from anywhere goes on at an instance of another machine', async () => {
    const database = await open();
    const spawner = createScriptedSpawner('anywhere');
    const world = createWorld(database, {}, spawner);
    const heir = world.another({ machineId: 'elsewhere' });
    await heir.lifecycle.restore();
    const server = await world.addServer('ann');
    await heir.addServer('ann');
    await world.start(server);
    worlds.splice(worlds.indexOf(world), 1);
    spawner.forget();
    await endLease(database, world.lease.id);
    await until(() => heir.routes.has('ann/'), 'the heir has it');
    expect(unreachableSince(await heir.stored(server))).toBeUndefined();
  });

  test('a server whose row is deleted elsewhere is ended', async () => {
    const database = await open();
    const world = createWorld(database);
    const server = await world.addServer('ann');
    await world.start(server);
    await database.kysely.deleteFrom('servers').execute();
    await until(() => world.spawner.running.size === 0, 'it has ended');
    expect(world.routes.size).toBe(0);
  });

  test('while an account is changed its servers at other instances are down too', async () => {
    const world = createWorld(await open());
    const other = world.another();
    const server = await world.addServer('ann');
    await other.addServer('ann');
    await world.start(server);
    await other.lifecycle.withoutServersOf(server.userId, async () => {
      expect(world.spawner.running.size).toBe(0);
      expect(await other.stored(server)).toMatchObject({ state: 'stopped' });
    });
  });

  test('the next hub goes on with what runs and clears away what does not', async () => {
    const world = createWorld(await open());
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
    const beforeTold = hold();
    spawner.script.afterStart = beforeTold.wait;
    world.lifecycle.start(unwritten, world.plan(unwritten)).catch(() => undefined);
    await until(beforeTold.isReached, 'unwritten is there');
    spawner.script.beforeStop = () => new Promise(() => undefined);
    await world.lifecycle.stop(ending);
    worlds.splice(worlds.indexOf(world), 1);
    spawner.script = {};
    spawner.forget();
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
    const world = createWorld(await open());
    const names = Array.from({ length: 40 }, (_, index) => `user-${index}`);
    const servers = await Promise.all(names.map((name) => world.addServer(name)));
    for (const server of servers) await world.start(server);
    worlds.splice(worlds.indexOf(world), 1);
    world.spawner.forget();
    for (const { id } of servers) world.spawner.die(id);

    const next = await world.next();
    const ends = hold();
    let ending = 0;
    world.spawner.script.beforeStop = () => {
      ending += 1;
      return ends.wait();
    };
    let recording = 0;
    let mostRecording = 0;
    next.gone = async () => {
      recording += 1;
      mostRecording = Math.max(mostRecording, recording);
      await new Promise((resolve) => setImmediate(resolve));
      recording -= 1;
    };
    const { cleared } = await next.lifecycle.restore();
    await until(() => ending === servers.length, 'all are being ended');
    ends.release();
    await cleared;
    expect(mostRecording).toBeLessThanOrEqual(4);
    expect(mostRecording).toBeGreaterThan(1);
    const stored = await Promise.all(servers.map((server) => next.stored(server)));
    expect(new Set(stored.map(({ state }) => state))).toEqual(new Set(['stopped']));
  });

  test('a server about which the spawner cannot tell at the start is looked for again', async () => {
    const world = createWorld(await open());
    const server = await world.addServer('ann');
    await world.start(server);
    await world.lifecycle[Symbol.asyncDispose]();
    let failures = 2;
    world.spawner.script.beforeRestore = async () => {
      failures -= 1;
      if (failures >= 0) throw new Error('the engine does not answer');
    };
    const next = await world.next({ pollIntervalMs: 10 });
    await next.lifecycle.restore();
    expect(next.routes.size).toBe(0);
    await until(() => next.routes.has('ann/'), 'the server is found');
    expect(await next.stored(server)).toMatchObject({ state: 'running' });
  });

  test('a hub that ends leaves running servers alone and cancels those that start', async () => {
    const world = createWorld(await open());
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
    const world = createWorld(await open(), { stopsServersAtEnd: true });
    const servers = await Promise.all(['ann', 'bob'].map((name) => world.addServer(name)));
    await Promise.all(servers.map((server) => world.start(server)));
    await world.lifecycle[Symbol.asyncDispose]();
    expect(world.spawner.running.size).toBe(0);
    expect(await world.store.listActive()).toEqual([]);
  });
});

test('a full disk fails the start, leaves no process, and is made up for when there is room', async () => {
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const world = createWorld(database);
  const server = await world.addServer('ann');
  world.spawner.script.afterStart = () => limitPages(database, 1);
  world.spawner.script.beforeStart = async ({ onOutput }) => onOutput('x'.repeat(40_000), 'stdout');
  world.readiness = () => Promise.reject(new Error('it never answered'));
  await expect(world.start(server)).rejects.toThrow('it never answered');
  expect(world.spawner.running.size).toBe(0);
  // What it printed did not fit any more, so the database still takes it for starting.
  expect(await world.stored(server)).toMatchObject({ state: 'stopping' });
  await limitPages(database, 1_000_000);
  world.spawner.script = {};
  world.readiness = async () => undefined;
  await world.start(server);
  expect(await world.stored(server)).toMatchObject({ state: 'running' });
});

test('a server that dies while the database is away is told as stopped once it is back', async () => {
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const world = createWorld(database);
  const server = await world.addServer('ann');
  await world.start(server);
  world.happened.length = 0;
  let isAway = true;
  world.gone = async () => {
    if (isAway) throw new HubError('storage_unavailable', 'The database cannot be reached.');
  };
  await setReadOnly(database, true);
  world.spawner.die(server.id, { code: 7, signal: null });
  await until(() => world.lifecycle.unitOf(server.id)?.state === 'stopped', 'its end is known');
  expect(world.routes.size).toBe(0);
  expect(await world.stored(server)).toMatchObject({ state: 'running' });

  // What comes back in part is not enough: the token of the server is still to be revoked.
  await setReadOnly(database, false);
  await until(async () => (await world.stored(server)).state === 'stopped', 'it is stored');
  expect(world.lifecycle.unitOf(server.id)?.state).toBe('stopped');
  isAway = false;
  await until(
    () => world.lifecycle.unitOf(server.id)?.state === undefined,
    'nothing is left to do',
  );
  expect(world.happened.filter((what) => what === 'gone ann/')).toHaveLength(1);
  expect(await world.stored(server)).toMatchObject({
    state: 'stopped',
    failure: { message: 'The server ended with exit code 7.' },
  });
});

test('whatever is asked for in whatever order, in the end what is said is what is there', async () => {
  const command = fc.record({
    what: fc.constantFrom('start', 'stop', 'die', 'poll', 'pause'),
    who: fc.constantFrom(0, 1),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 14 }), fc.scheduler(), async (commands, s) => {
      await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
      const world = createWorld(database);
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
      worlds.splice(worlds.indexOf(world), 1);
      await lifecycle[Symbol.asyncDispose]();
    }),
    { numRuns: 60 },
  );
});
