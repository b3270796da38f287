import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease } from '../../../test/support/instances.ts';
import { createLifecycleWorld, hold } from '../../../test/support/lifecycle-world.ts';
import { createScriptedSpawner } from '../../../test/support/scripted-spawner.ts';
import { until } from '../../../test/support/test-hub.ts';
import { unreachableSince } from './server.ts';

describeEachDatabase('the servers of several instances', (open) => {
  test('of two instances that start a server together one does, the other joins it', async () => {
    const world = createLifecycleWorld(await open());
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
    const world = createLifecycleWorld(await open());
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
    await expect(ready).rejects.toMatchObject({ code: 'spawn_failed', message: 'no room' });
  });

  test('limits hold exactly for all instances together', async () => {
    const limits = { activeServers: 5 };
    const world = createLifecycleWorld(await open(), { limits });
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
    const world = createLifecycleWorld(database);
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
    const world = createLifecycleWorld(database);
    const beside = world.another();
    const away = world.another({ machineId: 'elsewhere' });
    for (const each of [beside, away]) await each.addServer('ann');
    const server = await world.addServer('ann');
    await world.start(server);
    await until(() => beside.routes.size + away.routes.size === 2, 'the others lead to it');
    expect(beside.routes).toEqual(new Set(['ann/@http://127.0.0.1:10001']));
    expect(away.routes).toEqual(new Set([`ann/@${world.lease.id}`]));
    expect(await away.lifecycle.reaches(server)).toBe(true);
    await world.stop(server);
    await until(() => beside.routes.size + away.routes.size === 0, 'they lead to it no more');
  });

  test('an instance that is asked for a server which another one made ready just now leads there', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
    const beside = world.another();
    const server = await world.addServer('ann');
    await beside.lifecycle.restore();
    await world.start(server);
    // Many visitors cost what one costs.
    const reached = Array.from({ length: 20 }, () => beside.lifecycle.reaches(server));
    expect(new Set(await Promise.all(reached))).toEqual(new Set([true]));
    await world.stop(server);
    await until(() => beside.routes.size === 0, 'it leads there no more');
    expect(await beside.lifecycle.reaches(server)).toBe(false);
  });

  test('an instance leads to the servers of the others as soon as it has started', async () => {
    const world = createLifecycleWorld(await open());
    await world.start(await world.addServer('ann'));
    const other = world.another();
    await other.lifecycle.restore();
    expect([...other.routes]).toEqual(['ann/@http://127.0.0.1:10001']);
  });

  test('servers of an instance that is gone go on at another one of its machine', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
    const heir = world.another();
    await heir.lifecycle.restore();
    const [runs, died] = await Promise.all(['runs', 'died'].map((name) => world.addServer(name)));
    await heir.addServer('runs');
    for (const server of [runs!, died!]) await world.start(server);
    world.kill();
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
    const world = createLifecycleWorld(database);
    const heirs = [world.another(), world.another()];
    for (const heir of heirs) await heir.lifecycle.restore();
    const servers = await Promise.all(
      Array.from({ length: 120 }, (_, index) => world.addServer(`user-${index}`)),
    );
    for (const heir of heirs) await heir.addServer('user-0');
    for (const server of servers) await world.start(server);
    world.kill();
    await endLease(database, world.lease.id);
    const led = () => heirs.map(({ routes }) => [...routes].filter((each) => !each.includes('@')));
    await until(() => led().flat().length >= 120, 'all are taken over');
    expect(new Set(led().flat()).size).toBe(120);
    expect(led().flat()).toHaveLength(120);
    expect(world.spawner.running.size).toBe(120);
  });

  test('a server on a machine whose instance is away is unreachable, and comes back with it', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
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
      message: expect.stringContaining('since 2026-03-04 05:06 UTC'),
    });
    await endLease(database, world.lease.id, new Date(8_640_000_000_000_000));
    await until(() => other.routes.size === 1, 'it is back');
    expect(unreachableSince(await other.stored(server))).toBeUndefined();
  });

  test('an instance that was away for a moment, in the middle of a comparison, is led to again', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
    const server = await world.addServer('ann');
    await world.start(server);
    const other = world.another({ machineId: 'elsewhere' });
    await other.entered;
    const { listActive } = other.store;
    let reads = 0;
    other.store.listActive = async () => {
      reads += 1;
      if (reads > 1) return listActive();
      await endLease(database, world.lease.id);
      const away = await listActive();
      await endLease(database, world.lease.id, new Date(8_640_000_000_000_000));
      return away;
    };
    await until(() => other.routes.size === 1, 'it is led to');
    expect(reads).toBe(2);
  });

  test('an unreachable server can be given up and started elsewhere; what is left of it ends', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
    const other = world.another({ machineId: 'elsewhere', spawner: createScriptedSpawner() });
    const server = await world.addServer('ann');
    await other.addServer('ann');
    await world.start(server);
    const { listActive } = world.store;
    // Without a lease it cannot read either; else it would end its server as soon as it reads who has it now.
    world.store.listActive = () => Promise.reject(new Error('the database is away'));
    await endLease(database, world.lease.id);
    await other.stop(server);
    expect(other.happened).toEqual(['gone ann/']);
    await other.start(await other.stored(server));
    expect(other.spawner.running.size).toBe(1);
    expect(world.spawner.running.size).toBe(1);

    world.store.listActive = listActive;
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
    const world = createLifecycleWorld(database);
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
    const world = createLifecycleWorld(database, {}, spawner);
    const heir = world.another({ machineId: 'elsewhere' });
    await heir.lifecycle.restore();
    const server = await world.addServer('ann');
    await heir.addServer('ann');
    await world.start(server);
    world.kill();
    await endLease(database, world.lease.id);
    await until(() => heir.routes.has('ann/'), 'the heir has it');
    expect(unreachableSince(await heir.stored(server))).toBeUndefined();
  });

  test('a server whose row is deleted elsewhere is ended', async () => {
    const database = await open();
    const world = createLifecycleWorld(database);
    const server = await world.addServer('ann');
    // Compared before the start: with the row gone again, the database looks as it did then.
    expect(await world.lifecycle.reaches(server)).toBe(false);
    await world.start(server);
    await database.kysely.deleteFrom('servers').execute();
    await until(() => world.spawner.running.size === 0, 'it has ended');
    expect(world.routes.size).toBe(0);
  });

  test('while an account is changed its servers at other instances are down too', async () => {
    const world = createLifecycleWorld(await open());
    const other = world.another();
    const server = await world.addServer('ann');
    await other.addServer('ann');
    await world.start(server);
    await other.lifecycle.withoutServersOf(server.userId, async () => {
      expect(world.spawner.running.size).toBe(0);
      expect(await other.stored(server)).toMatchObject({ state: 'stopped' });
    });
  });
});
