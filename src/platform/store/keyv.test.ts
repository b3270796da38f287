import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { pino } from 'pino';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { useOwnPostgres } from '../../../test/support/databases.ts';
import { hasPostgres } from '../../../test/support/postgres.ts';
import { hasRedis, startRedis, useRedis } from '../../../test/support/redis.ts';
import type { HubDatabase } from './database.ts';
import { type KeyvSpaces, openKeyv } from './keyv.ts';
import { type KeyvTables, purgeExpiredKeys } from './keyv-database-adapter.ts';
import { useOnce } from './keyv-space.ts';
import { openDatabase } from './open-database.ts';

const log = pino({ level: 'silent' });
const directory = '.';

/** Declares the behaviour every back end has. `open` gives empty spaces. */
function declareSharedTests(open: () => Promise<KeyvSpaces>): void {
  test('keeps values of every JSON type until they are deleted', async () => {
    const space = (await open()).space('test');
    for (const value of ['text', '', 0, false, { deep: [1, null] }]) {
      await space.set('key', value);
      expect(await space.get('key')).toEqual(value);
    }
    expect(await space.has('key')).toBe(true);
    expect(await space.delete('key')).toBe(true);
    expect(await space.get('key')).toBeUndefined();
    expect(await space.has('key')).toBe(false);
  });

  test('forgets a value when its time is over', async () => {
    const space = (await open()).space('test');
    await space.set('short', 1, 1);
    await space.set('long', 2, 600_000);
    await expect.poll(() => space.get('short')).toBeUndefined();
    expect(await space.get('long')).toBe(2);
    await space.set('long', 3);
    expect(await space.get('long')).toBe(3);
  });

  test('keeps spaces apart, also when a key looks like one of another', async () => {
    const spaces = await open();
    const [one, two] = [spaces.space('one'), spaces.space('two')];
    await one.set('a', 1);
    await one.set('one:a', 2);
    await two.set('a', 3);
    await two.set('one:a', 4);
    expect(await one.get(['a', 'one:a'])).toEqual([1, 2]);
    expect(await two.get(['a', 'one:a', 'none'])).toEqual([3, 4, undefined]);
    await one.clear();
    expect(await one.get(['a', 'one:a'])).toEqual([undefined, undefined]);
    expect(await two.get(['a', 'one:a'])).toEqual([3, 4]);
  });

  test('lets one of many take a value', async () => {
    const space = (await open()).space('test');
    await space.set('once', 'x');
    const takers = await Promise.all(Array.from({ length: 10 }, () => space.delete('once')));
    expect(takers.filter(Boolean)).toHaveLength(1);
  });

  test('counts what many change at once', async () => {
    const space = (await open()).space<number>('test');
    const count = () =>
      space.update('count', (former = 0) => ({ value: former + 1, lifetimeMs: 60_000 }));
    await Promise.all(Array.from({ length: 12 }, count));
    expect(await space.get('count')).toBe(12);
    expect(await space.update('count', () => undefined)).toBe(12);
    expect(await space.update('count', () => 'delete')).toBeUndefined();
    expect(await space.has('count')).toBe(false);
    expect(await space.update('count', () => 'delete')).toBeUndefined();
  });

  test('lets one of many use a key, and again after its time', async () => {
    const used = (await open()).space<true>('test');
    const users = Array.from({ length: 10 }, () => useOnce(used, 'key', 60_000));
    expect((await Promise.all(users)).filter(Boolean)).toHaveLength(1);
    expect(await useOnce(used, 'short', 1)).toBe(true);
    await expect.poll(() => useOnce(used, 'short', 60_000)).toBe(true);
    expect(await useOnce(used, 'short', 60_000)).toBe(false);
  });

  test('iterates over the keys of its own space', async () => {
    const spaces = await open();
    const space = spaces.space('test');
    await spaces.space('other').set('z', 0);
    const expected = new Map(Array.from({ length: 12 }, (_, index) => [`key:${index}`, index]));
    for (const [key, value] of expected) await space.set(key, value);
    const found = new Map<string, unknown>();
    for await (const [key, value] of space.iterator?.(undefined) ?? []) found.set(key, value);
    expect(found).toEqual(expected);
  });

  test('takes keys of any length and with any character', async () => {
    const space = (await open()).space('test');
    const keys = ['x'.repeat(10_000), `${'x'.repeat(10_000)}y`, "it's % _ * ? [a] 李", ''];
    for (const [index, key] of keys.entries()) await space.set(key, index);
    expect(await space.get(keys)).toEqual([0, 1, 2, 3]);
    expect(await space.delete(keys)).toBe(true);
    expect(await space.has(keys)).toEqual([false, false, false, false]);
  });

  test('gives the same space for the same name', async () => {
    const spaces = await open();
    expect(spaces.space('test')).toBe(spaces.space('test'));
    expect(() => spaces.space('no:colon')).toThrow(TypeError);
  });
}

const disposeLater = async <T extends AsyncDisposable>(part: Promise<T>): Promise<T> => {
  const adopted = await part;
  toDispose.push(adopted);
  return adopted;
};
const toDispose: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of toDispose.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const openMemory = (): Promise<HubDatabase> =>
  disposeLater(openDatabase('sqlite::memory:', { directory, log }));

describe("expiring state in the hub's own database (SQLite)", () => {
  declareSharedTests(async () => {
    const database = await openMemory();
    return await disposeLater(openKeyv({ url: undefined, database, directory, log }));
  });

  test('deletes expired rows in portions', async () => {
    const database = await openMemory();
    const spaces = await disposeLater(openKeyv({ url: undefined, database, directory, log }));
    const space = spaces.space('test');
    for (let index = 0; index < 5; index += 1) await space.set(`old-${index}`, index, 1);
    await space.set('living', 1, 600_000);
    await space.set('eternal', 1);
    const kysely = database.kysely as unknown as Kysely<KeyvTables>;
    let purged = 0;
    await expect
      .poll(async () => {
        const count = await purgeExpiredKeys({ kysely, dialect: 'sqlite' }, 2);
        expect(count).toBeLessThanOrEqual(2);
        purged += count;
        return purged;
      })
      .toBe(5);
    const rows = await kysely.selectFrom('keyv').select('key').orderBy('key').execute();
    expect(rows.map(({ key }) => key)).toEqual(['test:eternal', 'test:living']);
  });

  test('says storage_unavailable when the database is closed', async () => {
    const database = await openDatabase('sqlite::memory:', { directory, log });
    const spaces = await disposeLater(openKeyv({ url: undefined, database, directory, log }));
    const space = spaces.space('test');
    await database[Symbol.asyncDispose]();
    await expect(space.get('key')).rejects.toMatchObject({ code: 'storage_unavailable' });
  });
});

describe('expiring state in an SQLite file of its own', () => {
  const openFile = async (folder: string) =>
    await disposeLater(
      openKeyv({
        url: 'sqlite:state.sqlite',
        database: await openMemory(),
        directory: folder,
        log,
      }),
    );
  const useFolder = () => {
    const folder = mkdtempSync(join(tmpdir(), 'hub-keyv-'));
    toDispose.push({
      async [Symbol.asyncDispose]() {
        rmSync(folder, { recursive: true, force: true });
      },
    });
    return folder;
  };

  declareSharedTests(() => openFile(useFolder()));

  test('outlives a restart', async () => {
    const folder = useFolder();
    const first = await openFile(folder);
    await first.space('test').set('key', 'kept', 600_000);
    await first[Symbol.asyncDispose]();
    const second = await openFile(folder);
    expect(await second.space('test').get('key')).toBe('kept');
  });
});

describe.skipIf(!hasPostgres())('expiring state in PostgreSQL', () => {
  const cluster = useOwnPostgres();
  const openPostgres = async (url: string) =>
    await disposeLater(openKeyv({ url, database: await openMemory(), directory, log }));

  declareSharedTests(async () => await openPostgres(await cluster().createDatabase()));
  declareClockTest(async () => await openPostgres(await cluster().createDatabase()));

  test('is shared by processes that open it at the same time', async () => {
    const url = await cluster().createDatabase();
    const [one, two] = await Promise.all([openPostgres(url), openPostgres(url)]);
    await one.space('test').set('key', 1);
    expect(await two.space('test').get('key')).toBe(1);
  });

  test('fails with storage_unavailable while the server is down, and works again after', async () => {
    const space = (await openPostgres(await cluster().createDatabase())).space('test');
    await space.set('key', 1);
    await cluster().stop();
    await expect(space.get('key')).rejects.toMatchObject({ code: 'storage_unavailable' });
    await expect(space.set('key', 2)).rejects.toMatchObject({ code: 'storage_unavailable' });
    await cluster().start();
    expect(await space.get('key')).toBe(1);
  });
});

/** For a store that several processes share, whose clocks may differ. */
function declareClockTest(open: () => Promise<KeyvSpaces>): void {
  test('keeps a value for as long as the store says, whatever the clock of a process says', async () => {
    const space = (await open()).space<number>('test');
    const aheadMs = 300_000;
    try {
      await space.set('from-here', 1, 60_000);
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + aheadMs });
      expect(await space.get('from-here')).toBe(1);
      await space.set('from-there', 2, 1_000);
      vi.useRealTimers();
      expect(await space.get('from-there')).toBe(2);
      await expect.poll(() => space.get('from-there')).toBeUndefined();
    } finally {
      vi.useRealTimers();
    }
  });
}

describe.skipIf(!hasRedis())('expiring state in Redis', () => {
  const redis = useRedis();
  const openRedis = async (url: string) =>
    await disposeLater(openKeyv({ url, database: await openMemory(), directory, log }));
  const openEmpty = async () => {
    await redis().stop();
    await redis().start();
    return await openRedis(redis().url);
  };

  declareSharedTests(openEmpty);
  declareClockTest(openEmpty);

  test('fails with storage_unavailable while Redis is down, and works again after', async () => {
    const space = (await openEmpty()).space('test');
    await space.set('key', 1);
    await redis().stop();
    for (const failing of [
      space.get('key'),
      space.get(['key']),
      space.set('key', 2),
      space.delete('key'),
      space.has('key'),
      space.clear(),
    ]) {
      await expect(failing).rejects.toMatchObject({ code: 'storage_unavailable' });
    }
    await redis().start();
    await expect.poll(() => space.set('key', 3).catch(() => false)).toBe(true);
    expect(await space.get('key')).toBe(3);
  });

  test('fails with storage_unavailable when Redis does not answer', async () => {
    const space = (await openEmpty()).space('test');
    await space.set('key', 1);
    redis().freeze();
    try {
      await expect(space.get('key')).rejects.toMatchObject({ code: 'storage_unavailable' });
    } finally {
      redis().thaw();
    }
  });

  test('opens no connection again after it was closed', async () => {
    const spaces = await openEmpty();
    const space = spaces.space('test');
    await spaces[Symbol.asyncDispose]();
    await expect(space.get('key')).rejects.toMatchObject({ code: 'storage_unavailable' });
  });

  test('says at the start that Redis does not answer, and where', async () => {
    const { url } = redis();
    await redis().stop();
    try {
      const opening = openKeyv({ url, database: await openMemory(), directory, log });
      await expect(opening).rejects.toThrow(/Redis at 127\.0\.0\.1:\d+ does not answer/);
    } finally {
      await redis().start();
    }
  });

  test('says at the start that the password is wrong, without repeating it', async () => {
    await using guarded = await startRedis({ password: 'right-password' });
    const url = guarded.url.replace('right-password', 'wrong-password');
    const opening = openKeyv({ url, database: await openMemory(), directory, log });
    await expect(opening).rejects.toThrow(
      /^(?!.*wrong-password).*refuses the user or the password/,
    );
    await openRedis(guarded.url);
  });
});
