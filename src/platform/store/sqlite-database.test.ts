import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { addUser, userNames, userRow, useSqliteFile } from '../../../test/support/sqlite-world.ts';
import { StartupError } from '../errors.ts';

const isRoot = process.geteuid?.() === 0;

const world = useSqliteFile();

describe('opening an SQLite file', () => {
  test('makes it beside the configuration, readable by its owner only', async () => {
    const database = await world.open();
    await addUser(database, 'alice');
    for (const name of ['hub.sqlite', 'hub.sqlite-wal', 'hub.sqlite-shm']) {
      expect(statSync(join(world.directory, name)).mode & 0o777, name).toBe(0o600);
    }
  });

  test('makes each commit durable and enforces references', async () => {
    const { kysely } = await world.open();
    const pragma = async (name: string) =>
      Object.values((await sql`pragma ${sql.raw(name)}`.execute(kysely)).rows[0] as object)[0];
    expect(await pragma('journal_mode')).toBe('wal');
    expect(await pragma('synchronous')).toBe(2);
    expect(await pragma('foreign_keys')).toBe(1);
  });

  test('says that the folder does not exist', async () => {
    const opening = world.open('sqlite:missing/hub.sqlite');
    await expect(opening).rejects.toThrow(StartupError);
    await expect(opening).rejects.toThrow(/folder .*missing of the database does not exist/);
  });

  test('says that the file is no database', async () => {
    writeFileSync(world.file, 'no database at all, and long enough to be looked at'.repeat(30));
    await expect(world.open()).rejects.toThrow(/damaged or not an SQLite database/);
    expect(readFileSync(world.file, 'utf8')).toContain('no database at all');
  });

  test('says that the path is a folder', async () => {
    mkdirSync(world.file);
    await expect(world.open()).rejects.toThrow(StartupError);
  });

  test.skipIf(isRoot && !requires('setpriv'))('says that the file cannot be written', async () => {
    const first = await world.open();
    await first[Symbol.asyncDispose]();
    chmodSync(world.file, 0o444);
    chmodSync(world.directory, 0o555);
    try {
      const refusal = await openWithoutPrivileges(`sqlite:${world.file}`);
      expect(refusal).toMatch(/cannot be written: give the hub's account the right/);
    } finally {
      chmodSync(world.directory, 0o755);
    }
  });

  test('says that another program holds it', async () => {
    using holder = new DatabaseSync(world.file);
    holder.exec('create table other (id text); begin exclusive');
    await expect(world.open()).rejects.toThrow(/locked by another process/);
  });

  test('says that the file belongs to another program', async () => {
    using other = new DatabaseSync(world.file);
    other.exec('create table users (id text)');
    await expect(world.open()).rejects.toThrow(/hub\.sqlite.*table users already exists/);
  });

  test('opens what version 0001 left behind', async () => {
    using past = new DatabaseSync(world.file);
    const fixture = join(import.meta.dirname, '../../../fixtures/databases/0001.sql');
    past.exec(readFileSync(fixture, 'utf8'));
    const database = await world.open();
    expect(await userNames(database)).toEqual(['alice', 'josé']);
    await database.kysely.deleteFrom('users').where('name', '=', 'alice').execute();
    const tokens = await database.kysely.selectFrom('access_tokens').select('id').execute();
    expect(tokens).toEqual([]);
  });

  test('refuses what a later version left behind and names both versions', async () => {
    using future = new DatabaseSync(world.file);
    future.exec('create table hub_schema (version integer); insert into hub_schema values (999)');
    await expect(world.open()).rejects.toThrow(
      /hub\.sqlite: the database has version 999, this hub knows \d+: start the newer hub/,
    );
  });

  test('works for several processes that start together on no file', async () => {
    const children = [startWriter('one'), startWriter('two'), startWriter('three')];
    try {
      await Promise.all(children.map(untilCommitted));
    } finally {
      for (const child of children) await kill(child);
    }
    expect(await userNames(await world.open())).toEqual(['one', 'three', 'two']);
  });
});

describe('an SQLite database', () => {
  test('has what was committed before the process was killed', async () => {
    const child = startWriter('alice');
    await untilCommitted(child);
    await kill(child);
    expect(await userNames(await world.open())).toEqual(['alice']);
  });

  test('runs transactions one after the other', async () => {
    const database = await world.open();
    const events: string[] = [];
    const run = (name: string) =>
      database.transaction(async (transaction) => {
        events.push(`${name} begins`);
        await transaction.insertInto('users').values(userRow(name)).execute();
        await new Promise((resolve) => setImmediate(resolve));
        events.push(`${name} ends`);
      });
    await Promise.all([run('a'), run('b'), run('c')]);
    expect(events).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  test('keeps a query beside a transaction out of it', async () => {
    const database = await world.open();
    const failing = database.transaction(async (transaction) => {
      await transaction.insertInto('users').values(userRow('undone')).execute();
      throw new Error('undo');
    });
    const beside = addUser(database, 'kept');
    await expect(failing).rejects.toThrow('undo');
    await beside;
    expect(await userNames(database)).toEqual(['kept']);
  });

  test('answers queries during a transaction, with what was there before it', async () => {
    const database = await world.open();
    await addUser(database, 'before');
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: written, resolve: noteWritten } = Promise.withResolvers<void>();
    const working = database.transaction(async (transaction) => {
      await transaction.insertInto('users').values(userRow('within')).execute();
      const seen = await transaction.selectFrom('users').select('name').execute();
      noteWritten();
      await released;
      return seen.length;
    });
    await written;
    expect(await userNames(database)).toEqual(['before']);
    release();
    expect(await working).toBe(2);
    expect(await userNames(database)).toEqual(['before', 'within']);
  });

  test('shows each write to every later read', async () => {
    const database = await world.open();
    const names: string[] = [];
    for (let index = 100; index < 150; index += 1) {
      names.push(`user-${index}`);
      await addUser(database, `user-${index}`);
      expect(await userNames(database)).toEqual(names);
    }
  });

  test('waits for the lock of another process without blocking this one', async () => {
    const database = await world.open();
    using holder = new DatabaseSync(world.file);
    holder.exec('begin immediate');
    const writing = addUser(database, 'alice');
    // The timer runs only when the waiting does not block.
    setTimeout(() => holder.exec('commit'), 1);
    await writing;
    expect(await userNames(database)).toEqual(['alice']);
  });

  test('is storage_unavailable while it stays locked, and works again after', async () => {
    const database = await world.open();
    using holder = new DatabaseSync(world.file);
    holder.exec('begin immediate');
    const failures = Promise.all(
      ['a', 'b', 'c'].map((name) =>
        expect(addUser(database, name)).rejects.toMatchObject({
          code: 'storage_unavailable',
          message: 'The database is locked by another process.',
        }),
      ),
    );
    await failures;
    const transaction = database.transaction(async () => 'never');
    await expect(transaction).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await userNames(database)).toEqual([]);
    holder.exec('commit');
    await addUser(database, 'd');
    expect(await userNames(database)).toEqual(['d']);
  });

  test('is storage_unavailable when the disk is full, and loses nothing that was committed', async () => {
    const database = await world.open();
    await addUser(database, 'alice');
    const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(database.kysely);
    await sql`pragma max_page_count = ${sql.lit(rows[0]?.page_count)}`.execute(database.kysely);
    const value = 'x'.repeat(1_000_000);
    const big = () => database.kysely.insertInto('settings').values({ key: 'k', value }).execute();
    await expect(big()).rejects.toMatchObject({
      code: 'storage_unavailable',
      message: 'The disk of the database is full.',
    });
    const inTransaction = database.transaction(async (transaction) => {
      await transaction.insertInto('users').values(userRow('bob')).execute();
      await transaction.insertInto('settings').values({ key: 'k', value }).execute();
    });
    await expect(inTransaction).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await userNames(database)).toEqual(['alice']);
    await sql`pragma max_page_count = 1000000`.execute(database.kysely);
    await big();
  });

  test('is storage_unavailable while it cannot be written', async () => {
    const database = await world.open();
    await sql`pragma query_only = on`.execute(database.kysely);
    await expect(addUser(database, 'alice')).rejects.toMatchObject({
      code: 'storage_unavailable',
    });
    await sql`pragma query_only = off`.execute(database.kysely);
    await addUser(database, 'alice');
  });

  test('is storage_unavailable after it was closed', async () => {
    const database = await world.open();
    await database[Symbol.asyncDispose]();
    await expect(userNames(database)).rejects.toMatchObject({ code: 'storage_unavailable' });
    await database[Symbol.asyncDispose]();
  });

  test('gives the disk back what a long reader made its log take', async () => {
    const database = await world.open();
    using reader = new DatabaseSync(world.file, { readOnly: true });
    reader.exec('begin');
    reader.prepare('select count(*) from users').get();
    const value = 'x'.repeat(1_000_000);
    for (let index = 0; index < 24; index += 1) {
      await database.kysely
        .insertInto('settings')
        .values({ key: `k${index}`, value })
        .execute();
    }
    const walBytes = () => statSync(`${world.file}-wal`).size;
    expect(walBytes()).toBeGreaterThan(24_000_000);
    reader.exec('commit');
    await expect.poll(walBytes).toBeLessThan(1_000_000);
  });

  test('calls the listeners when another process committed something', async () => {
    const [here, there] = [await world.open(), await world.open()];
    let callCount = 0;
    const stop = here.onChange(() => {
      callCount += 1;
    });
    await addUser(there, 'alice');
    await expect.poll(() => callCount).toBe(1);
    stop();
    here.announceChange({ kind: 'rights_changed' });
    expect(callCount).toBe(1);
  });

  test('wakes no thread while nobody commits anything', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const database = await world.open();
    let callCount = 0;
    database.onChange(() => {
      callCount += 1;
    });
    await vi.advanceTimersByTimeAsync(1_000);
    using asked = vi.spyOn(Worker.prototype, 'postMessage');
    await vi.advanceTimersByTimeAsync(60_000);
    expect([asked.mock.calls, callCount]).toEqual([[], 0]);
    await addUser(await world.open(), 'alice');
    vi.advanceTimersByTime(1_000);
    await expect.poll(() => callCount).toBe(1);
  });

  test('calls listeners at once here, each of them though one fails', async () => {
    const database = await world.open();
    const calls: string[] = [];
    database.onChange(() => {
      calls.push('first');
      throw new Error('broken listener');
    });
    database.onChange(() => calls.push('second'));
    database.announceChange({ kind: 'rights_changed' });
    expect(calls).toEqual(['first', 'second']);
  });
});

/** Starts another process that commits a user and then stays. */
function startWriter(name: string): ChildProcess {
  const program = `
    import { pino } from ${JSON.stringify(import.meta.resolve('pino'))};
    import { openDatabase } from ${JSON.stringify(import.meta.resolve('./open-database.ts'))};
    import { createUserStore } from ${JSON.stringify(import.meta.resolve('../../identity/users/user-store.ts'))};
    const database = await openDatabase('sqlite:hub.sqlite', {
      directory: ${JSON.stringify(world.directory)},
      log: pino({ level: 'silent' }),
    });
    await createUserStore(database).create({ name: ${JSON.stringify(name)} });
    process.stdout.write('committed');
    setInterval(() => {}, 1000);
  `;
  return spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

async function untilCommitted(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit').then(() => {
    throw new Error('the process ended before it had committed');
  });
  await Promise.race([once(child.stdout!, 'data'), ended]);
  ended.catch(() => {});
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** Opens the database in a process that may only do what the permission bits allow. */
async function openWithoutPrivileges(url: string): Promise<string> {
  const script = `
    import { openDatabase } from ${JSON.stringify(import.meta.resolve('./open-database.ts'))};
    await using database = await openDatabase(${JSON.stringify(url)}, {
      directory: '/', log: { warn() {}, info() {}, error() {} },
    });`;
  const command = [process.execPath, '--input-type=module', '--eval', script];
  // Root passes by the bits; without these two capabilities it does not, wherever the clone stands.
  const drop = () => [
    pathOf('setpriv'),
    '--inh-caps=-all',
    '--bounding-set=-dac_override,-dac_read_search',
    '--',
  ];
  const [program = '', ...args] = isRoot ? [...drop(), ...command] : command;
  return text(spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] }).stderr);
}

describe('the version of the content', () => {
  test('grows with each commit, of another process too, and with nothing else', async () => {
    const database = await world.open();
    const other = await world.open();
    await addUser(database, 'ann');
    const before = database.contentVersion() ?? Number.NaN;
    expect(await userNames(database)).toEqual(['ann']);
    expect(database.contentVersion()).toBe(before);
    await addUser(database, 'bea');
    const own = database.contentVersion() ?? Number.NaN;
    expect(own).toBeGreaterThan(before);
    await addUser(other, 'cleo');
    expect(database.contentVersion()).toBeGreaterThan(own);
  });

  test('is not known of a database in memory, nor of one that is closed', async () => {
    expect((await world.open('sqlite::memory:')).contentVersion()).toBeUndefined();
    const database = await world.open();
    expect(database.contentVersion()).toBeTypeOf('number');
    await database[Symbol.asyncDispose]();
    expect(database.contentVersion()).toBeUndefined();
  });
});
