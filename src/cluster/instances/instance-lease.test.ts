import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { lockTable } from '../../../test/support/faulty-store.ts';
import { until } from '../../../test/support/test-hub.ts';
import { identifyProcess } from '../../platform/process-table/process-table.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { InstanceDescription } from './instance.ts';
import { type InstanceLease, openInstanceLease } from './instance-lease.ts';
import { createInstanceStore, type InstanceStore } from './instance-store.ts';

const log = pino({ level: 'silent' });
const ended = { pid: process.pid, startTime: 'long ago' };

function describeInstance(given: Partial<InstanceDescription> = {}): InstanceDescription {
  const own = identifyProcess(process.pid);
  if (own === undefined) throw new Error('this process cannot be identified');
  return {
    id: crypto.randomUUID(),
    name: 'one',
    url: undefined,
    host: 'host-of-one',
    machineId: 'this-machine',
    process: own,
    version: '1.2.3',
    basePath: '/',
    keyDigests: ['key'],
    settingsDigest: 'settings',
    ...given,
  };
}

const held: InstanceLease[] = [];
afterEach(async () => {
  for (const lease of held.splice(0)) await lease[Symbol.asyncDispose]();
});

async function open(
  store: InstanceStore,
  given: Partial<InstanceDescription> = {},
  options: { readonly monotonicMs?: () => number; readonly isShared?: boolean } = {},
): Promise<InstanceLease> {
  const lease = await openInstanceLease({
    store,
    instance: describeInstance(given),
    isShared: true,
    announce: () => undefined,
    log,
    ...options,
  });
  held.push(lease);
  return lease;
}

async function setLease(database: HubDatabase, name: string, fromNowMs: number): Promise<void> {
  const { leaseUntil } = (await createInstanceStore(database).list()).find(
    (each) => each.name === name,
  ) ?? { leaseUntil: new Date() };
  await database.kysely
    .updateTable('instances')
    .set({ lease_until: +leaseUntil - 15_000 + fromNowMs })
    .where('name', '=', name)
    .execute();
}

/** Takes the place of `test` where there is one process alone, and so nothing to lose. */
const leftOut = Object.assign((_name: string, _work: () => Promise<void>) => undefined, {
  each: () => () => undefined,
});

describeEachDatabase('the lease of an instance', (openDatabase, dialect) => {
  const onPostgres = dialect === 'postgres' ? test : (leftOut as unknown as typeof test);
  // On SQLite no lease is ever shared: a lock on the file comes first.
  onPostgres(
    'is refused while another process of its name has it, with who, where and since when',
    async () => {
      const store = createInstanceStore(await openDatabase());
      const first = await open(store);
      await expect(open(store)).rejects.toThrow(
        new RegExp(
          `^Another hub named "one" runs on this database \\(process ${process.pid} on host-of-one, ` +
            'version 1\\.2\\.3, since 20\\d\\d-.*Z\\)\\. Stop it first, or give each a Hub\\.instance_name',
        ),
      );
      expect((await store.list()).map(({ id }) => id)).toEqual([first.id]);
      await open(store, { name: 'two' });
      expect((await store.list()).map(({ name }) => name)).toEqual(['one', 'two']);
    },
  );

  test('passes to the next run at once when the former process has ended', async () => {
    const store = createInstanceStore(await openDatabase());
    await open(store, { process: ended });
    const next = await open(store);
    expect((await store.list()).map(({ id, isLive }) => [id, isLive])).toEqual([[next.id, true]]);
  });

  test('brings along what the former run owned', async () => {
    const database = await openDatabase();
    const store = createInstanceStore(database);
    const former = await open(store, { process: ended });
    await database.kysely
      .insertInto('managed_processes')
      .values({
        owner: 'service:a',
        pid: 1,
        start_time: '',
        started_at: 0,
        instance_id: former.id,
      })
      .execute();
    const next = await open(store);
    const owned = await database.kysely
      .selectFrom('managed_processes')
      .select('instance_id')
      .execute();
    expect(owned).toEqual([{ instance_id: next.id }]);
  });

  onPostgres(
    'of a process that cannot be seen from here is waited for, and taken when it has ended',
    async () => {
      const database = await openDatabase();
      const store = createInstanceStore(database);
      const instance = describeInstance({ process: ended, machineId: 'another-machine' });
      await store.enter(instance, () => undefined);
      let refusals = 0;
      await open({
        ...store,
        async enter(entered, judge) {
          try {
            return await store.enter(entered, judge);
          } catch (error) {
            refusals += 1;
            if (refusals === 2) await store.endLease(instance.id);
            throw error;
          }
        },
      });
      expect(refusals).toBe(2);
    },
  );

  onPostgres(
    'of a process that cannot be seen from here is refused once it is renewed',
    async () => {
      const store = createInstanceStore(await openDatabase());
      const instance = describeInstance({ machineId: 'another-machine' });
      await store.enter(instance, () => undefined);
      const opening = open(store);
      opening.catch(() => undefined);
      const renewing = setInterval(() => void store.renew(instance.id), 200);
      try {
        await expect(opening).rejects.toThrow('Another hub named "one" runs on this database');
      } finally {
        clearInterval(renewing);
      }
    },
  );

  onPostgres.each([
    ['path', { basePath: '/team/' }, 'serves the path /, this one /team/'],
    ['key', { keyDigests: ['other'] }, 'has another Hub.cookie_secret'],
    ['order of keys', { keyDigests: ['new', 'key'] }, 'has another Hub.cookie_secret'],
  ])('is refused beside an instance with another %s', async (_, given, reason) => {
    const store = createInstanceStore(await openDatabase());
    const first = await open(store, { name: 'first' });
    await expect(open(store, { name: 'second', ...given })).rejects.toThrow(reason);
    expect((await store.list()).map(({ name }) => name)).toEqual(['first']);
    await first[Symbol.asyncDispose]();
    await open(store, { name: 'second', ...given });
  });

  onPostgres('of keys that are being exchanged fit one another', async () => {
    const store = createInstanceStore(await openDatabase());
    await open(store, { name: 'first', keyDigests: ['old', 'new'] });
    await open(store, { name: 'second', keyDigests: ['new', 'old'] });
    expect(await store.list()).toHaveLength(2);
  });

  onPostgres(
    'is lost after ten seconds without the database, by the monotonic clock, and comes back',
    async () => {
      const database = await openDatabase();
      const real = createInstanceStore(database);
      let nowMs = 0;
      let isAway = false;
      const store: InstanceStore = {
        ...real,
        renew: (id) => (isAway ? Promise.reject(new Error('away')) : real.renew(id)),
      };
      const lease = await open(store, {}, { monotonicMs: () => nowMs });
      const received: string[] = [];
      lease.onLost(() => received.push('lost'));
      lease.onRegained(() => received.push('regained'));
      isAway = true;
      nowMs = 9_900;
      expect(lease.isHeld()).toBe(true);
      expect(lease.isHeldSince(1_000)).toBe(true);
      nowMs = 10_000;
      expect(lease.isHeld()).toBe(false);
      await until(() => received.includes('lost'), 'the loss is told');
      isAway = false;
      nowMs = 20_000;
      await until(() => received.includes('regained'), 'the lease is back');
      expect(received).toEqual(['lost', 'regained']);
      expect(lease.isHeld()).toBe(true);
      expect(lease.isHeldSince(1_000)).toBe(false);
      expect(lease.isHeldSince(nowMs)).toBe(true);
    },
  );

  onPostgres(
    'that another process took meanwhile does not come back before that one has ended',
    async () => {
      const database = await openDatabase();
      const store = createInstanceStore(database);
      let nowMs = 0;
      const lease = await open(store, {}, { monotonicMs: () => nowMs });
      await setLease(database, 'one', -1);
      const other = await open(store);
      nowMs = 10_000;
      let isBack = false;
      lease.onRegained(() => {
        isBack = true;
      });
      expect(lease.isHeld()).toBe(false);
      nowMs = 15_000;
      await until(async () => !lease.isHeld(), 'the renewal is refused');
      expect((await store.list()).map(({ id }) => id)).toEqual([other.id]);
      await other[Symbol.asyncDispose]();
      nowMs = 20_000;
      await until(() => isBack, 'the lease is back');
      expect((await store.list()).map(({ id }) => id)).toEqual([lease.id]);
    },
  );

  onPostgres('is renewed however many statements wait for the database', async () => {
    const database = await openDatabase();
    const store = createInstanceStore(database);
    const lease = await open(store);
    const unlock = await lockTable(database, 'users');
    // More than there are connections, and each of them hangs.
    const waiting = Array.from({ length: 30 }, () =>
      database.kysely.selectFrom('users').selectAll().execute(),
    );
    const renewed = store.renew(lease.id);
    const first = await Promise.race([renewed, Promise.any(waiting).then(() => 'a statement')]);
    await unlock();
    await Promise.allSettled(waiting);
    expect(first).toBe(true);
  });

  test('ends with the process that stops', async () => {
    const store = createInstanceStore(await openDatabase());
    const lease = await open(store);
    await lease[Symbol.asyncDispose]();
    expect(lease.isHeld()).toBe(false);
    expect(await store.list()).toEqual([]);
  });
});
