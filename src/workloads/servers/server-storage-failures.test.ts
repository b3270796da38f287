import { expect, test } from 'vitest';
import { limitPages, setReadOnly } from '../../../test/support/faulty-store.ts';
import { createLifecycleWorld, silentLog } from '../../../test/support/lifecycle-world.ts';
import { until } from '../../../test/support/test-hub.ts';
import { HubError } from '../../platform/errors.ts';
import { openDatabase } from '../../platform/store/open-database.ts';

test('a full disk fails the start, leaves no process, and is made up for when there is room', async () => {
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log: silentLog });
  const world = createLifecycleWorld(database);
  const server = await world.addServer('ann');
  world.spawner.script.afterStart = () => limitPages(database, 1);
  const reason = `it never answered ${'x'.repeat(40_000)}`;
  world.readiness = () => Promise.reject(new Error(reason));
  await expect(world.start(server)).rejects.toThrow('it never answered');
  expect(world.spawner.running.size).toBe(0);
  // The reason did not fit any more, so the database still takes it for starting.
  expect(await world.stored(server)).toMatchObject({ state: 'stopping' });
  await limitPages(database, 1_000_000);
  world.spawner.script = {};
  world.readiness = async () => undefined;
  await world.start(server);
  expect(await world.stored(server)).toMatchObject({ state: 'running' });
});

test('a server that dies while the database is away is told as stopped once it is back', async () => {
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log: silentLog });
  const world = createLifecycleWorld(database);
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
