import { sql } from 'kysely';
import pg from 'pg';
import { pino } from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { useOwnPostgres } from '../../../test/support/databases.ts';
import { freePort } from '../../../test/support/free-port.ts';
import { hasPostgres } from '../../../test/support/postgres.ts';
import { StartupError } from '../errors.ts';
import type { HubDatabase } from './database.ts';
import { openDatabase } from './open-database.ts';
import { openPostgresConnection } from './postgres-connection.ts';

const log = pino({ level: 'silent' });
const opened: HubDatabase[] = [];

afterEach(async () => {
  for (const database of opened.splice(0)) await database[Symbol.asyncDispose]();
});

async function open(url: string): Promise<HubDatabase> {
  const database = await openDatabase(url, { directory: '.', log });
  opened.push(database);
  return database;
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(statement);
  await client.end();
}

describe.skipIf(!hasPostgres())('PostgreSQL', () => {
  const cluster = useOwnPostgres();

  test('says at the start that nothing listens there, without the password', async () => {
    const url = `postgresql://hub:my-password@127.0.0.1:${await freePort()}/hub`;
    const opening = open(url);
    await expect(opening).rejects.toThrow(StartupError);
    await expect(opening).rejects.toThrow(
      /^(?!.*my-password)PostgreSQL at 127\.0\.0\.1:\d+\/hub refuses the connection/,
    );
  });

  test('says at the start that the password is wrong, without repeating it', async () => {
    const url = new URL(await cluster().createDatabase());
    url.password = 'my-mistake';
    const opening = open(url.href);
    await expect(opening).rejects.toThrow(/refuses the user or the password/);
    await expect(opening).rejects.toThrow(/^(?!.*my-mistake)/);
  });

  test('says at the start that the database does not exist', async () => {
    const url = new URL(await cluster().createDatabase());
    url.pathname = '/missing';
    await expect(open(url.href)).rejects.toThrow(/has no such database: create it/);
  });

  test('says at the start that none of several hosts answers, or what cannot be asked of them', async () => {
    const hosts = 'postgresql://hub:my-password@127.0.0.1:1,[::1]:1/hub';
    await expect(open(hosts)).rejects.toThrow(
      /^(?!.*my-password)PostgreSQL at 127\.0\.0\.1:1,\[::1\]:1\/hub refuses the connection/,
    );
    await expect(open(`${hosts}?target_session_attrs=standby`)).rejects.toThrow(
      'Hub.database_url has target_session_attrs=standby: a hub writes, so make that read-write',
    );
  });

  test('says at the start that a URL is none, without repeating it', async () => {
    const opening = open('postgresql://hub:my#pass/word@127.0.0.1/hub');
    await expect(opening).rejects.toThrow(/^PostgreSQL is not a valid URL/);
  });

  test('says at the start that the database can only be read', async () => {
    const url = await cluster().createDatabase();
    const name = new URL(url).pathname.slice(1);
    await execute(url, `alter database ${name} set default_transaction_read_only = on`);
    await expect(open(url)).rejects.toThrow(/can only be read/);
  });

  test('says at the start that the database belongs to another program', async () => {
    const url = await cluster().createDatabase();
    await execute(url, 'create table users (id text)');
    await expect(open(url)).rejects.toThrow(/holds tables of another program/);
  });

  test('works for several processes that start together on an empty database', async () => {
    const url = await cluster().createDatabase();
    const databases = await Promise.all(Array.from({ length: 4 }, () => open(url)));
    for (const { kysely } of databases) {
      expect(await kysely.selectFrom('users').selectAll().execute()).toEqual([]);
    }
  });

  test('tells this process of a change at once, and others of what was changed', async () => {
    const url = await cluster().createDatabase();
    const [here, there] = [await open(url), await open(url)];
    const reported = { here: [] as unknown[], there: [] as unknown[] };
    here.onChange((subject) => reported.here.push(subject));
    there.onChange((subject) => reported.there.push(subject));
    here.announceChange({ kind: 'session_ended', sessionId: 'a' });
    expect(reported).toEqual({ here: [{ kind: 'session_ended', sessionId: 'a' }], there: [] });
    await here.kysely
      .insertInto('users')
      .values({ id: 'a', name: 'alice', admin: 0, invited: 0, created_at: 0 })
      .execute();
    await expect.poll(() => reported.there).toEqual([{ kind: 'user_added' }]);
  });

  test('is storage_unavailable while the server is down, then works and calls listeners', async () => {
    const database = await open(await cluster().createDatabase());
    const select = () => database.kysely.selectFrom('users').selectAll().execute();
    let callCount = 0;
    database.onChange(() => {
      callCount += 1;
    });
    await cluster().stop();
    await expect(select()).rejects.toMatchObject({ code: 'storage_unavailable' });
    const transaction = database.transaction(async () => 'never');
    await expect(transaction).rejects.toMatchObject({ code: 'storage_unavailable' });
    await cluster().start();
    expect(await select()).toEqual([]);
    // What others changed in between was not heard.
    await expect.poll(() => callCount).toBeGreaterThan(0);
  });

  test('survives the end of its connections, idle or in a transaction', async () => {
    const url = await cluster().createDatabase();
    const database = await open(url);
    const endAll = () =>
      execute(
        url,
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()`,
      );
    await endAll();
    const inTransaction = database.transaction(async (transaction) => {
      await sql`select 1`.execute(transaction);
      await endAll();
      await sql`select 2`.execute(transaction);
    });
    await expect(inTransaction).rejects.toMatchObject({ code: 'storage_unavailable' });
    // A connection may still be handed out in the moment before its end is noticed.
    const users = () => database.kysely.selectFrom('users').selectAll().execute();
    await expect.poll(() => users().catch(() => undefined)).toEqual([]);
  });

  test('ends a statement that takes too long', async () => {
    const url = await cluster().createDatabase();
    const { kysely, close } = openPostgresConnection({ url, log, statementTimeoutMs: 2_000 });
    try {
      const sleeping = sql`select pg_sleep(60)`.execute(kysely);
      await expect(sleeping).rejects.toMatchObject({ code: 'storage_unavailable' });
      await sql`select 1`.execute(kysely);
    } finally {
      await close();
    }
  });

  test('leaves a connection that gives no answer', async () => {
    const url = await cluster().createDatabase();
    const { kysely, close } = openPostgresConnection({ url, log, statementTimeoutMs: 2_000 });
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(kysely);
    const pid = rows[0]!.pid;
    process.kill(pid, 'SIGSTOP');
    try {
      const stuck = sql`select 1`.execute(kysely);
      await expect(stuck).rejects.toMatchObject({ code: 'storage_unavailable' });
      const next = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(kysely);
      expect(next.rows[0]!.pid).not.toBe(pid);
    } finally {
      process.kill(pid, 'SIGCONT');
      await close();
    }
  });

  describe('two that wait for each other', () => {
    const insertUsers = (database: HubDatabase) =>
      database.kysely
        .insertInto('users')
        .values(
          ['1', '2'].map((id) => ({ id, name: `user-${id}`, admin: 0, invited: 0, created_at: 0 })),
        )
        .execute();
    const makeAdmin = (on: HubDatabase['kysely'], id: string) =>
      on.updateTable('users').set({ admin: 1 }).where('id', '=', id).execute();
    const adminCount = async ({ kysely }: HubDatabase) =>
      (await kysely.selectFrom('users').select('id').where('admin', '=', 1).execute()).length;

    test('are both done when they are transactions', async () => {
      const database = await open(await cluster().createDatabase());
      await insertUsers(database);
      const bothHaveOne = Promise.withResolvers<void>();
      let attempts = 0;
      const change = (first: string, second: string) =>
        database.transaction(async (transaction) => {
          await makeAdmin(transaction, first);
          attempts += 1;
          if (attempts === 2) bothHaveOne.resolve();
          await bothHaveOne.promise;
          await makeAdmin(transaction, second);
        });
      await Promise.all([change('1', '2'), change('2', '1')]);
      expect(attempts).toBe(3);
      expect(await adminCount(database)).toBe(2);
    });

    test('are both done when one is a statement by itself', async () => {
      const url = await cluster().createDatabase();
      const database = await open(url);
      await insertUsers(database);
      const other = new pg.Client({ connectionString: url });
      await other.connect();
      try {
        // The hub's statement is the one that is ended.
        await other.query("begin; set local deadlock_timeout = '1min'");
        await other.query("update users set admin = 1 where id = '1'");
        const statement = sql`
          with first as materialized (update users set admin = 1 where id = '2' returning id)
          update users set admin = 1 where id = '1' and exists (select 1 from first)`;
        const done = statement.execute(database.kysely);
        const waiting = 'select 1 from pg_locks where not granted';
        await expect.poll(async () => (await other.query(waiting)).rowCount).toBe(1);
        await other.query("update users set admin = 1 where id = '2'");
        await other.query('commit');
        await done;
      } finally {
        await other.end();
      }
      expect(await adminCount(database)).toBe(2);
    });
  });

  test('refuses text that it cannot store as a bad request', async () => {
    const { kysely } = await open(await cluster().createDatabase());
    const finding = kysely.selectFrom('users').selectAll().where('name', '=', 'a\0b').execute();
    await expect(finding).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('is storage_unavailable after it was closed', async () => {
    const database = await open(await cluster().createDatabase());
    await database[Symbol.asyncDispose]();
    const select = database.kysely.selectFrom('users').selectAll().execute();
    await expect(select).rejects.toMatchObject({ code: 'storage_unavailable' });
  });
});
