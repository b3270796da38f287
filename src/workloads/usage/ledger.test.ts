import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { abortable, createLifecycleWorld, hold } from '../../../test/support/lifecycle-world.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import { watchStatements } from '../../../test/support/statements.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createInstanceStore } from '../../cluster/instances/instance-store.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { ResourceUsage } from '../../plugin/host/spawner.ts';
import { countUse, hourMs } from './count-use.ts';
import { createLedger } from './ledger.ts';
import { compactUse, dayMs } from './ledger-store.ts';
import { createUsageStore } from './usage-store.ts';

const free = { cpu_hour: 0, gib_hour: 0, gpu_hour: 0, server_hour: 0 };

async function world(database: HubDatabase, userNames: readonly string[] = ['ada']) {
  const { kysely } = database;
  const users = createUserStore(database);
  const userIds = new Map<string, string>();
  await enterInstance(database, { id: 'one' });
  await enterInstance(database, { id: 'two' });
  for (const name of userNames) {
    const { id } = await users.create({ name });
    userIds.set(name, id);
    await addServer(database, id, 'running', 'one');
    await kysely
      .updateTable('servers')
      .set({ started_at: Date.UTC(2026, 6, 15, 12, 29, 59), user_options: '{"profile":"big"}' })
      .where('user_id', '=', id)
      .execute();
  }
  let monotonic = 0;
  let now = Date.UTC(2026, 6, 15, 12, 30);
  const { renewHeld } = createInstanceStore(database);
  const usages = new Map<string, ResourceUsage>();
  const metered: (readonly [profile: string, engine: string, seconds: number])[] = [];
  const servers = () => kysely.selectFrom('servers').select(['id', 'instance_id']).execute();
  const ids = (await servers()).map(({ id }) => id);
  const ledgerOf = (instanceId: string, more: Partial<Parameters<typeof createLedger>[0]> = {}) =>
    createLedger({
      database,
      instanceStore: { renewHeld: async (...of) => (await renewHeld(...of)) && now },
      instance: { id: instanceId },
      config: {
        spawners: [{ name: 'local', class: 'local-process' }],
        Spawner: { prices: free, profiles: [{ name: 'big', gpu_limit: 2 }] },
      } as never,
      lifecycle: {
        units: () =>
          ids.map((id) => ({
            server: { id },
            spawnerState: {},
            ownedSinceMs: Number.NEGATIVE_INFINITY,
          })),
      },
      usageOfServer: (id) => usages.get(id),
      metrics: {
        countUse: (of, { wallSeconds }) => metered.push([of.profile, of.engine, wallSeconds]),
      },
      log: pino({ level: 'silent' }),
      monotonicMs: () => monotonic,
      ...more,
    });
  return {
    ids,
    userIds,
    usages,
    metered,
    ledgerOf,
    pass(ms: number) {
      monotonic += ms;
      now += ms;
    },
    /** Has the clock of the database set. */
    jump(ms: number) {
      now += ms;
    },
    now: () => now,
    monotonicMs: () => monotonic,
    giveTo: (instanceId: string) =>
      kysely.updateTable('servers').set({ instance_id: instanceId }).execute(),
    async totals(kind: string, span = 'month') {
      const { fn } = kysely;
      const row = await kysely
        .selectFrom('usage_totals')
        .where('kind', '=', kind)
        .where('span', '=', span)
        .select([
          fn.sum<number>('wall_seconds').as('wall'),
          fn.sum<number>('cpu_seconds').as('cpu'),
          fn.sum<number>('gib_seconds').as('gib'),
          fn.sum<number>('gpu_seconds').as('gpu'),
        ])
        .executeTakeFirstOrThrow();
      return {
        wall: Math.round(row.wall),
        cpu: Math.round(row.cpu),
        gib: Math.round(row.gib),
        gpu: Math.round(row.gpu),
      };
    },
  };
}

const using = (cpuSeconds: number): ResourceUsage => ({
  cpuCores: 1,
  cpuSeconds,
  memoryBytes: 2 ** 31,
});

describeEachDatabase('the ledger', (open, dialect) => {
  test('counts what the engine counted, once, whoever runs the server', async () => {
    const database = await open();
    const { ids, userIds, usages, ledgerOf, pass, jump, giveTo, totals } = await world(database);
    const group = await createGroup(createGroupStore(database), { name: 'physics' });
    await database.kysely
      .insertInto('group_members')
      .values({ group_id: group.id, user_id: userIds.get('ada')!, origin: 'api' })
      .execute();
    const [one, two] = [ledgerOf('one'), ledgerOf('two')];
    const count = async (ledger: typeof one, counter: number, afterMs: number) => {
      usages.set(ids[0]!, using(counter));
      pass(afterMs);
      await ledger.run();
    };
    await count(one, 3, 0);
    expect(await totals('all')).toEqual({ wall: 1, cpu: 3, gib: 2, gpu: 2 });
    await count(one, 13, 30_000);
    expect(await totals('user')).toEqual({ wall: 31, cpu: 13, gib: 62, gpu: 62 });

    // The second takes over and the first, which does not know yet, goes on.
    await giveTo('two');
    await count(two, 20, 20_000);
    await count(one, 25, 10_000);
    expect(await totals('group')).toMatchObject({ wall: 51, cpu: 20 });
    // Given back: what the first knew is out of date.
    await giveTo('one');
    await count(one, 26, 5_000);
    expect(await totals('profile')).toMatchObject({ wall: 66, cpu: 26 });

    // Without a lease nothing is written, and nothing is lost.
    await endLease(database, 'one');
    await count(one, 27, 10_000);
    expect(await totals('all')).toMatchObject({ wall: 66, cpu: 26 });
    await endLease(database, 'one', new Date(8_640_000_000_000_000));
    await count(one, 28, 10_000);
    expect(await totals('all')).toMatchObject({ wall: 86, cpu: 28 });

    // A clock that is set counts for nothing, and a counter that began again counts from 0.
    jump(86_400_000);
    await count(one, 3, 1_000);
    jump(-2 * 86_400_000);
    await count(one, 4, 1_000);
    expect(await totals('all')).toMatchObject({ wall: 88, cpu: 32 });
    expect(await totals('all', 'day')).toMatchObject({ wall: 88, cpu: 32 });
  });

  test('counts all of runs that are shorter than its interval', async () => {
    const database = await open();
    const { ledgerOf, pass, now, monotonicMs, totals, ids, usages, metered } =
      await world(database);
    const { kysely } = database;
    const one = ledgerOf('one');
    const stopped = () =>
      ({ state: 'stopped', instance_id: null, started_at: null, stopped_at: now() }) as const;
    for (let run = 0; run < 5; run++) {
      const started = { state: 'running', instance_id: 'one', started_at: now() };
      await kysely.updateTable('servers').set(started).execute();
      pass(20_000);
      usages.set(ids[0]!, using(20));
      // What is done after a server has ended, as by hooks, is no use of it; nor is an end that could not be written.
      const ended = monotonicMs();
      pass(7_000);
      const away = one.end(ids[0]!, ended, () => Promise.reject(new Error('no')));
      await expect(away).rejects.toThrow('no');
      await one.end(ids[0]!, ended, (on) => on.updateTable('servers').set(stopped()).execute());
      usages.clear();
    }
    await one.run();
    expect(await totals('user')).toEqual({ wall: 100, cpu: 100, gib: 200, gpu: 200 });
    expect(metered.reduce((sum, [, , seconds]) => sum + seconds, 0)).toBe(100);
    expect(new Set(metered.map(([profile, engine]) => `${profile} ${engine}`))).toEqual(
      new Set(['big local-process']),
    );
    expect(await kysely.selectFrom('server_meters').selectAll().execute()).toEqual([]);
  });

  test('counts starts that never answer from when their app runs, so that a loop of them is no way round', async () => {
    const database = await open();
    const servers = createLifecycleWorld(database);
    const { lifecycle } = servers;
    const server = await servers.addServer('ann');
    const { ledgerOf, totals } = await world(database, []);
    const ledger = ledgerOf(servers.lease.id, {
      lifecycle,
      usageOfServer: (id) => lifecycle.unitOf(id) && using(100),
      monotonicMs: () => performance.now(),
    });
    servers.endRun = ({ id }, endedAtMs, write) => ledger.end(id, endedAtMs, write);
    servers.readiness = () => Promise.reject(new Error('it hangs'));
    for (let run = 0; run < 3; run++)
      await expect(servers.start(server)).rejects.toThrow('it hangs');
    expect(await totals('user')).toMatchObject({ cpu: 300 });

    const answer = hold();
    servers.readiness = (signal) => abortable(answer.wait(), signal);
    const starting = expect(servers.start(server)).rejects.toThrow('cancelled');
    await until(answer.isReached, 'the hub waits for an answer');
    await ledger.run();
    expect(await totals('user')).toMatchObject({ cpu: 400 });
    await Promise.all([starting, servers.stop(server)]);
    expect(await totals('user')).toMatchObject({ cpu: 400 });
    expect(await database.kysely.selectFrom('server_meters').selectAll().execute()).toEqual([]);
  });

  test('keeps no rows for profiles that are none, which a start may name as it likes', async () => {
    const database = await open();
    const { kysely } = database;
    const { ledgerOf, pass, totals, ids, usages, metered } = await world(database);
    const one = ledgerOf('one');
    for (const profile of ['mine', 'mine too']) {
      const user_options = JSON.stringify({ profile });
      await kysely.updateTable('servers').set({ user_options }).execute();
      usages.set(ids[0]!, using(20));
      await one.run();
      pass(20_000);
    }
    expect(await totals('user')).toMatchObject({ wall: 21 });
    expect(await totals('profile')).toMatchObject({ wall: 0 });
    expect(new Set(metered.map(([profile]) => profile))).toEqual(new Set(['']));
  });

  test('counts the memory alone of what is paused', async () => {
    const database = await open();
    const { ledgerOf, pass, now, totals, ids, usages } = await world(database);
    const one = ledgerOf('one');
    usages.set(ids[0]!, using(1));
    await one.run();
    await database.kysely.updateTable('servers').set({ paused_at: now() }).execute();
    pass(30_000);
    await one.run();
    expect(await totals('user')).toEqual({ wall: 1, cpu: 1, gib: 62, gpu: 2 });
  });

  test('closes what has ended, with an interval at most', async () => {
    const database = await open();
    const { ledgerOf, pass, now, totals, ids, usages } = await world(database);
    const one = ledgerOf('one');
    usages.set(ids[0]!, { cpuCores: 2, memoryBytes: 0 });
    await one.run();
    pass(3_600_000);
    await database.kysely
      .updateTable('servers')
      .set({ state: 'stopped', instance_id: null, stopped_at: now() })
      .execute();
    await one.run();
    await one.run();
    expect(await totals('all')).toMatchObject({ wall: 31, cpu: 62 });
    expect(await database.kysely.selectFrom('server_meters').selectAll().execute()).toEqual([]);
  });

  // Statements are counted where SQLite is asked.
  if (dialect === 'sqlite')
    test('asks the same few things however many run', async () => {
      const counts: number[] = [];
      for (const size of [1, 60]) {
        const database = await open();
        const names = Array.from({ length: size }, (_, index) => `user-${index}`);
        const { ledgerOf, totals } = await world(database, names);
        using watched = watchStatements();
        counts.push((await watched.during(() => ledgerOf('one').run())).length);
        expect((await totals('all')).wall).toBeGreaterThanOrEqual(size);
      }
      expect(counts[0]).toBe(counts[1]);
      expect(counts[0]).toBeLessThan(12);
    });

  test('is summed up by month for those whom a reader may see', async () => {
    const database = await open();
    const { ledgerOf, ids, usages, pass } = await world(database, ['ada', 'bob', 'eve']);
    const one = ledgerOf('one');
    for (const [index, id] of ids.entries()) usages.set(id, using(index + 1));
    await one.run();
    pass(30_000);
    await database.kysely.deleteFrom('servers').where('id', '=', ids[2]!).execute();
    await one.run();
    await database.kysely
      .updateTable('users')
      .set({ name: 'bert' })
      .where('name', '=', 'bob')
      .execute();
    await database.kysely.deleteFrom('users').where('name', '=', 'eve').execute();
    const usage = createUsageStore(database);
    const asked = {
      kind: 'user',
      month: Date.UTC(2026, 6),
      sort: 'server_hours',
      offset: 0,
      limit: 10,
    } as const;
    const all = await usage.ofMonth({ ...asked, onlyNames: 'all' });
    expect(all.items.map(({ name }) => name).toSorted()).toEqual(['ada', 'bert', 'eve']);
    expect(all).toMatchObject({ total: 3, sum: { wallSeconds: 93 } });
    expect(await usage.ofMonth({ ...asked, onlyNames: ['bert', 'eve'] })).toMatchObject({
      total: 1,
      items: [{ name: 'bert', wallSeconds: 31 }],
    });
    const month = { from: Date.UTC(2026, 6), to: Date.UTC(2026, 7) };
    for (const which of [{ kind: 'user', name: 'bert' }, { kind: 'all' }] as const) {
      expect(await usage.byDay(which, month)).toMatchObject([
        { at: Date.UTC(2026, 6, 15), wallSeconds: which.kind === 'all' ? 93 : 31 },
      ]);
    }
    expect(await usage.byDay({ kind: 'group', name: 'bert' }, month)).toEqual([]);
    const profiles = await usage.ofMonth({ ...asked, kind: 'profile', onlyNames: 'all', limit: 1 });
    expect(profiles).toMatchObject({ total: 1, items: [{ name: 'big', wallSeconds: 93 }] });
  });

  test('makes days of hours, with the same sums', async () => {
    const database = await open();
    const { ledgerOf, ids, usages } = await world(database);
    usages.set(ids[0]!, using(4));
    await ledgerOf('one').run();
    const { kysely } = database;
    await kysely
      .updateTable('usage_records')
      .set({ at: 5 * hourMs })
      .execute();
    const [record] = await kysely.selectFrom('usage_records').selectAll().execute();
    await kysely
      .insertInto('usage_records')
      .values({ ...record!, at: 7 * hourMs })
      .execute();
    await compactUse(database, new Date(dayMs - 1));
    expect(await kysely.selectFrom('usage_records').selectAll().execute()).toHaveLength(2);
    await compactUse(database, new Date(2 * dayMs));
    await compactUse(database, new Date(2 * dayMs));
    expect(await kysely.selectFrom('usage_records').selectAll().execute()).toEqual([
      {
        ...record,
        span: 'day',
        at: 0,
        wall_seconds: record!.wall_seconds * 2,
        cpu_seconds: 8,
        gib_seconds: record!.gib_seconds * 2,
        gpu_seconds: record!.gpu_seconds * 2,
      },
    ]);
    expect(
      await kysely.selectFrom('usage_totals').select('span').where('kind', '=', 'all').execute(),
    ).toHaveLength(3);
  });
});

test('use is divided among the hours it falls into, at the prices of its time', () => {
  const reading = { usage: { cpuCores: 1, memoryBytes: 2 ** 30 }, gpus: 0 };
  const uses = countUse(
    { cpuSeconds: undefined },
    reading,
    { nowMs: 2 * hourMs + 900_000, elapsedMs: hourMs },
    { ...free, cpu_hour: 4 },
  );
  expect(
    uses.map(({ at, source, amounts }) => [at / hourMs, source, amounts.cpuSeconds, amounts.cost]),
  ).toEqual([
    [1, 'sample', 2700, 3],
    [2, 'sample', 900, 1],
  ]);
});
