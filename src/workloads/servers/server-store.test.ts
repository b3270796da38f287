import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { explainQueryPlan, watchStatements } from '../../../test/support/statements.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { savePhrase, text } from '../../platform/texts/text.ts';
import { createServerStore } from './server-store.ts';

describeEachDatabase('the store of servers', (open) => {
  async function create() {
    const database = await open();
    const users = createUserStore(database);
    const ann = await users.create({ name: 'ann' });
    return { database, users, ann, store: createServerStore(database) };
  }

  test('makes a server once, also when asked twice at once', async () => {
    const { store, ann } = await create();
    const [one, other] = await Promise.all([
      store.ensure(ann.id, 'lab', 'My lab'),
      store.ensure(ann.id, 'lab', 'My lab'),
    ]);
    expect(one).toEqual(other);
    expect(one).toMatchObject({
      userName: 'ann',
      name: 'lab',
      displayName: 'My lab',
      state: 'stopped',
      url: undefined,
      spawnerState: {},
      userOptions: {},
      failure: undefined,
    });
    expect(await store.find('ann', 'lab')).toEqual(one);
    expect(await store.find('ann', 'other')).toBeUndefined();
    expect(await store.find('bob', 'lab')).toBeUndefined();
  });

  test('makes none for a user who is gone', async () => {
    const { store } = await create();
    await expect(store.ensure('gone', '')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('makes no more named servers than allowed, of many that are asked for at once', async () => {
    const { store, users, ann } = await create();
    await store.ensure(ann.id, '');
    const made = await Promise.all(
      Array.from({ length: 8 }, (_, index) => store.ensureWithin(3, ann.id, `lab-${index}`)),
    );
    expect(made.filter((server) => server !== undefined)).toHaveLength(3);
    expect(await store.listOfUser('ann')).toHaveLength(4);
    const [lab] = made.filter((server) => server !== undefined);
    expect(await store.ensureWithin(3, ann.id, lab!.name)).toEqual(lab);
    const bob = await users.create({ name: 'bob' });
    expect(await store.ensureWithin(3, bob.id, 'lab')).toBeDefined();
  });

  test('lists the servers of many users at once, stopped ones when they are asked for', async () => {
    const { users, store, ann } = await create();
    const bob = await users.create({ name: 'bob' });
    const ids = [ann.id, bob.id, 'nobody'];
    const lab = await store.ensure(ann.id, 'lab');
    const home = await store.ensure(ann.id, '');
    const other = await store.ensure(bob.id, '');
    await store.moveTo(lab.id, 'starting');
    const starting = await store.find('ann', 'lab');
    expect(await store.listByUser(ids)).toEqual(
      new Map([
        [ann.id, [home, starting]],
        [bob.id, [other]],
      ]),
    );
    expect(await store.listByUser([bob.id])).toEqual(new Map([[bob.id, [other]]]));
    expect(await store.listByUser(ids, { withStopped: false })).toEqual(
      new Map([[ann.id, [starting]]]),
    );
  });

  test('lets one of many take a server, and only along the way of its states', async () => {
    const { store, ann } = await create();
    const { id } = await store.ensure(ann.id, '');
    const taken = await Promise.all(Array.from({ length: 5 }, () => store.moveTo(id, 'starting')));
    expect(taken.filter(Boolean)).toHaveLength(1);
    expect(await store.moveTo(id, 'running')).toBe(true);
    expect(await store.moveTo(id, 'starting')).toBe(false);
    expect(await store.moveTo(id, 'stopping')).toBe(true);
    expect(await store.moveTo(id, 'running')).toBe(false);
    expect(await store.moveTo(id, 'stopped')).toBe(true);
    expect(await store.moveTo(id, 'stopping')).toBe(false);
    expect(await store.moveTo('nobody', 'starting')).toBe(false);
  });

  test('changes a server while it is stopped, all or nothing', async () => {
    const { store, ann } = await create();
    const { id } = await store.ensure(ann.id, 'lab');
    await store.ensure(ann.id, 'other');
    const change = { name: 'bench', displayName: 'Mine', userOptions: { size: 2 } };
    expect(await store.changeStopped(id, change)).toBe(true);
    expect(await store.find('ann', 'bench')).toMatchObject({ id, ...change });
    const taken = store.changeStopped(id, { name: 'other', displayName: 'Not mine' });
    await expect(taken).rejects.toMatchObject({ code: 'conflict' });
    expect(await store.find('ann', 'bench')).toMatchObject({ displayName: 'Mine' });
    expect(await store.changeStopped(id, {})).toBe(true);
    expect(await store.moveTo(id, 'starting')).toBe(true);
    expect(await store.changeStopped(id, { name: 'lab' })).toBe(false);
    expect(await store.find('ann', 'lab')).toBeUndefined();
  });

  test('keeps what is known of a server, and forgets it when told', async () => {
    const { database, store, ann } = await create();
    const { id } = await store.ensure(ann.id, '');
    const at = new Date('2026-01-02T03:04:05.678Z');
    const url = 'http+unix://%2Frun%2Fx.sock';
    await store.moveTo(id, 'starting', { userOptions: { size: 2 } });
    await store.update(id, { url, spawnerState: { pid: 7 }, startedAt: at });
    await store.update(id, {});
    expect(await store.find('ann', '')).toMatchObject({
      url,
      spawnerState: { pid: 7 },
      userOptions: { size: 2 },
      startedAt: at,
    });
    const failure = { message: 'gone', at, output: ['a', 'ü'] };
    const begunAt = Date.now();
    await store.moveTo(id, 'stopped', { failure, url: null, spawnerState: {}, startedAt: null });
    const stopped = await store.find('ann', '');
    expect(stopped).toMatchObject({ url: undefined, startedAt: undefined, failure });
    expect(Number(stopped?.stoppedAt)).toBeGreaterThanOrEqual(begunAt);
    expect(Number(stopped?.stoppedAt)).toBeLessThanOrEqual(Date.now());
    await store.update(id, { failure: null });
    expect((await store.find('ann', ''))?.failure).toBeUndefined();
    // A hub that notes no ends has started it since.
    await database.kysely
      .updateTable('servers')
      .set({ starting_at: Date.now() + 1_000 })
      .execute();
    expect((await store.find('ann', ''))?.stoppedAt).toBeUndefined();
  });

  test.for([text`The server ended: ${text`its pod was deleted`}.`, 'a sentence of a plugin'])(
    'keeps of a failure what can be said in each language: %s',
    async (message) => {
      const { store, ann } = await create();
      const { id } = await store.ensure(ann.id, '');
      await store.moveTo(id, 'starting', {});
      await store.moveTo(id, 'stopped', { failure: { message, at: new Date(), output: [] } });
      const stored = (await store.find('ann', ''))?.failure?.message;
      expect(stored && savePhrase(stored)).toEqual(savePhrase(message));
    },
  );

  test('lists the servers of a user, and those that are not stopped', async () => {
    const { store, users, ann } = await create();
    const bob = await users.create({ name: 'bob' });
    const main = await store.ensure(ann.id, '');
    await store.ensure(ann.id, 'lab');
    const other = await store.ensure(bob.id, '');
    await store.moveTo(main.id, 'starting');
    await store.moveTo(other.id, 'starting');
    await store.moveTo(other.id, 'running');
    expect((await store.listOfUser('ann')).map(({ name }) => name)).toEqual(['', 'lab']);
    const active = await store.listActive();
    expect(active.map(({ id }) => id).sort()).toEqual([main.id, other.id].sort());
  });

  test('deletes only what is stopped, and everything of a user that is deleted', async () => {
    const { store, users, ann } = await create();
    const { id } = await store.ensure(ann.id, '');
    await store.moveTo(id, 'starting');
    await store.delete(id);
    expect(await store.find('ann', '')).toBeDefined();
    await store.moveTo(id, 'stopped');
    await store.delete(id);
    expect(await store.find('ann', '')).toBeUndefined();
    await store.ensure(ann.id, 'lab');
    await users.delete(ann.id);
    expect(await store.find('ann', 'lab')).toBeUndefined();
  });

  test('moves the last activity only forward', async () => {
    const { store, ann } = await create();
    const { id } = await store.ensure(ann.id, '');
    const [early, late] = [new Date(1_000), new Date(2_000)];
    for (const at of [early, late, early]) await store.recordActivity(new Map([[id, at]]));
    expect((await store.find('ann', ''))?.lastActivityAt).toEqual(late);
  });
});

test('the servers of a page of users are found without looking up each user', async () => {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const store = createServerStore(database);
  using watch = watchStatements();
  const statements = await watch.during(async () => {
    await store.listByUser(['1', '2']);
    await store.listByUser(['1', '2'], { withStopped: false });
  });
  expect(statements).toHaveLength(2);
  for (const statement of statements) {
    const plan = await explainQueryPlan(database, statement);
    expect(plan.indexOf('SEARCH servers'), plan).toBeGreaterThan(-1);
    expect(plan.indexOf('SEARCH servers'), plan).toBeLessThan(plan.indexOf('SEARCH users'));
  }
});
