import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { HubError } from '../../platform/errors.ts';
import { createActivityLog } from './activity.ts';
import { createServerStore } from './server-store.ts';

type Recorded = Record<string, number>;

function create(traffic: { serverId: string; userId: string; at: Date }[] = []) {
  const users: Recorded[] = [];
  const servers: Recorded[] = [];
  let failure: ((ids: readonly string[]) => Error | undefined) | undefined;
  const record = (into: Recorded[]) => async (entries: ReadonlyMap<string, Date>) => {
    into.push(Object.fromEntries([...entries].map(([id, at]) => [id, at.getTime()])));
  };
  const log = createActivityLog({
    users: {
      async recordActivity(entries) {
        const error = failure?.([...entries.keys()]);
        if (error !== undefined) throw error;
        await record(users)(entries);
      },
    },
    servers: { recordActivity: record(servers) },
    collectTraffic: () => traffic.splice(0),
    log: pino({ level: 'silent' }),
  });
  const refuse = (next: typeof failure) => {
    failure = next;
  };
  return { log, users, servers, refuse };
}

test('many notes are one write, of the latest time', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, servers } = create();
  parts.use(log);
  for (const at of [5, 9, 7]) log.noteUser('ann', new Date(at));
  log.noteServer('s', new Date(3));
  await log.flush();
  await log.flush();
  expect(users).toEqual([{ ann: 9 }]);
  expect(servers).toEqual([{ s: 3 }]);
});

test('what is told ahead of its time counts as now', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, servers } = create();
  parts.use(log);
  log.noteServer('s', new Date(Date.now() + 50 * 60_000));
  await log.flush();
  expect(servers[0]?.['s']).toBeLessThanOrEqual(Date.now());
});

test('what the gateway saw counts for the server and its user', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, servers } = create([{ serverId: 's', userId: 'ann', at: new Date(4) }]);
  parts.use(log);
  await log.flush();
  expect(users).toEqual([{ ann: 4 }]);
  expect(servers).toEqual([{ s: 4 }]);
});

test('nothing noted is lost at the end', async () => {
  const { log, users } = create();
  log.noteUser('ann', new Date(1));
  await log[Symbol.asyncDispose]();
  expect(users).toEqual([{ ann: 1 }]);
});

test('takes no time that is none, or that has not come yet', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, servers } = create();
  parts.use(log);
  log.noteUser('ann', new Date(Number.NaN));
  log.noteUser('bob', new Date(Date.now() + 86_400_000));
  log.noteServer('s', new Date(Number.NEGATIVE_INFINITY));
  await log.flush();
  expect([users, servers]).toEqual([[], []]);
});

test('stores the servers when users cannot be stored, and keeps the users for later', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, servers, refuse } = create();
  parts.use(log);
  refuse(() => new HubError('storage_unavailable', 'The disk of the database is full.'));
  log.noteUser('ann', new Date(5));
  log.noteServer('s', new Date(3));
  await expect(log.flush()).rejects.toThrow('disk');
  expect(servers).toEqual([{ s: 3 }]);
  log.noteUser('ann', new Date(4));
  refuse(undefined);
  await log.flush();
  expect(users).toEqual([{ ann: 5 }]);
});

test('one entry that cannot be stored costs no other', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, refuse } = create();
  parts.use(log);
  refuse((ids) => (ids.includes('bad') ? new Error('a value out of range') : undefined));
  for (const [id, ms] of Object.entries({ ann: 1, bad: 2, cleo: 3 }))
    log.noteUser(id, new Date(ms));
  await log.flush();
  expect(users).toEqual([{ ann: 1 }, { cleo: 3 }]);
});

describeEachDatabase('activity in a database', (open) => {
  test('a time that no column can hold stops no other user’s activity', async () => {
    const database = await open();
    const users = createUserStore(database);
    const servers = createServerStore(database);
    const [ann, eve] = [await users.create({ name: 'ann' }), await users.create({ name: 'eve' })];
    const log = createActivityLog({
      users,
      servers,
      collectTraffic: () => [],
      log: pino({ level: 'silent' }),
    });
    // PostgreSQL refuses what is no number; SQLite would take it for no time at all.
    await users.recordActivity(new Map([[eve.id, new Date(1)]]));
    const absurd = new Date(2);
    log.noteUser(eve.id, absurd);
    absurd.setTime(Number.NaN);
    log.noteUser(ann.id, new Date(1000));
    await log[Symbol.asyncDispose]();
    expect((await users.getByName('ann')).lastActivityAt).toEqual(new Date(1000));
    expect((await users.getByName('eve')).lastActivityAt).toEqual(new Date(1));
  });
});
