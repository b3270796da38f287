import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { Kysely, sql } from 'kysely';
import { expect, test } from 'vitest';
import { createNodeSqliteDialect } from './node-sqlite-dialect.ts';
import { createDirectEngine, type SqliteEngine } from './sqlite-engine.ts';

interface Notes {
  notes: { id: number; text: string };
}

async function open({ queueTimeoutMs = 5000, answerMs = 0 } = {}) {
  const database = new DatabaseSync(':memory:');
  database.exec('create table notes (id integer primary key, text text not null)');
  const direct = createDirectEngine(database);
  const slow: SqliteEngine = {
    get isInTransaction() {
      return direct.isInTransaction;
    },
    async run(...given) {
      await delay(answerMs);
      return direct.run(...given);
    },
    async runTogether(given) {
      await delay(answerMs);
      return direct.runTogether(given);
    },
    close: () => direct.close(),
  };
  const kysely = new Kysely<Notes>({
    dialect: createNodeSqliteDialect({
      writer: answerMs === 0 ? direct : slow,
      queueTimeoutMs,
    }),
  });
  return { database, kysely };
}

test('tells how many rows a statement changed', async () => {
  const { kysely } = await open();
  const inserted = await kysely
    .insertInto('notes')
    .values([
      { id: 1, text: 'a' },
      { id: 2, text: 'b' },
    ])
    .executeTakeFirst();
  expect(inserted.numInsertedOrUpdatedRows).toBe(2n);
  const updated = await kysely.updateTable('notes').set({ text: 'c' }).executeTakeFirst();
  expect(updated.numUpdatedRows).toBe(2n);
  const deleted = await kysely.deleteFrom('notes').where('id', '=', 1).executeTakeFirst();
  expect(deleted.numDeletedRows).toBe(1n);
});

test('gives the rows of a returning clause', async () => {
  const { kysely } = await open();
  const row = await kysely
    .insertInto('notes')
    .values({ id: 7, text: 'x' })
    .returningAll()
    .executeTakeFirst();
  expect(row).toEqual({ id: 7, text: 'x' });
});

test('streams rows while other queries run', async () => {
  const { kysely } = await open();
  for (const id of [1, 2, 3]) await kysely.insertInto('notes').values({ id, text: '' }).execute();
  const ids: number[] = [];
  for await (const { id } of kysely.selectFrom('notes').select('id').stream()) ids.push(id);
  expect(ids).toEqual([1, 2, 3]);
});

test('goes on with a statement whose table changed since it was first used', async () => {
  const { kysely } = await open();
  const select = () => kysely.selectFrom('notes').selectAll().execute();
  await kysely.insertInto('notes').values({ id: 1, text: 'a' }).execute();
  expect(await select()).toEqual([{ id: 1, text: 'a' }]);
  await sql`alter table notes add column extra text default 'new'`.execute(kysely);
  expect(await select()).toEqual([{ id: 1, text: 'a', extra: 'new' }]);
});

test('works through more different statements than it keeps', async () => {
  const { kysely } = await open();
  for (let index = 0; index < 500; index += 1) {
    const { rows } = await sql<{ value: number }>`select ${sql.lit(index)} as value`.execute(
      kysely,
    );
    expect(rows).toEqual([{ value: index }]);
  }
});

test('lets no query wait for ever behind a transaction', async () => {
  const { kysely } = await open({ queueTimeoutMs: 20 });
  const release = Promise.withResolvers<void>();
  const holding = kysely.transaction().execute(() => release.promise);
  const waiting = kysely.selectFrom('notes').selectAll().execute();
  await expect(waiting).rejects.toMatchObject({ code: 'storage_unavailable' });
  release.resolve();
  await holding;
  expect(await kysely.selectFrom('notes').selectAll().execute()).toEqual([]);
});

test('writes a hundred rows within the time of a few, so that none waits too long', async () => {
  const { kysely } = await open({ answerMs: 50, queueTimeoutMs: 1000 });
  const ids = Array.from({ length: 100 }, (_, id) => id);
  const insert = (id: number) => kysely.insertInto('notes').values({ id, text: '' }).execute();
  await Promise.all([
    ...ids.map(insert),
    kysely
      .transaction()
      .execute((transaction) =>
        transaction.insertInto('notes').values({ id: 1000, text: 'alone' }).execute(),
      ),
  ]);
  const { rows } = await sql<{ count: number }>`select count(*) as count from notes`.execute(
    kysely,
  );
  expect(rows).toEqual([{ count: 101 }]);
});

test('tells each of the statements that are committed together what came of it alone', async () => {
  const { kysely } = await open({ answerMs: 5 });
  const insert = (id: number, text: string) =>
    kysely.insertInto('notes').values({ id, text }).returning('id').executeTakeFirst();
  const outcomes = await Promise.allSettled([
    insert(1, 'first'),
    insert(2, 'second'),
    insert(2, 'again'),
    kysely.updateTable('notes').set({ text: 'changed' }).where('id', '=', 2).executeTakeFirst(),
    insert(3, 'third'),
  ]);
  expect(outcomes).toMatchObject([
    { value: { id: 1 } },
    { value: { id: 2 } },
    { reason: { errcode: 1555 } },
    { value: { numUpdatedRows: 1n } },
    { value: { id: 3 } },
  ]);
  const found = await kysely.selectFrom('notes').select('text').orderBy('id').execute();
  expect(found.map(({ text }) => text)).toEqual(['first', 'changed', 'third']);
});

test('changes nothing of what is committed together when that fails as a whole', async () => {
  const { database, kysely } = await open({ answerMs: 5 });
  // As a full disk does in the middle of a transaction.
  database.exec(
    "create trigger full before insert on notes when new.text = 'too long' begin select raise(rollback, 'full'); end",
  );
  const insert = (id: number, text: string) =>
    kysely.insertInto('notes').values({ id, text }).execute();
  const texts = ['alone', 'second', 'too long', 'fourth'];
  const outcomes = await Promise.allSettled(texts.map((text, id) => insert(id, text)));
  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    ...['rejected', 'rejected', 'rejected'],
  ]);
  expect(await kysely.selectFrom('notes').select('text').execute()).toEqual([{ text: 'alone' }]);
  await insert(5, 'fifth');
  expect(await kysely.selectFrom('notes').select('id').execute()).toHaveLength(2);
});

test('closes only when what was under way has ended', async () => {
  const { database, kysely } = await open();
  const release = Promise.withResolvers<void>();
  const working = kysely.transaction().execute(async (transaction) => {
    await transaction.insertInto('notes').values({ id: 1, text: 'a' }).execute();
    await release.promise;
    return await transaction.selectFrom('notes').select('id').execute();
  });
  const queued = kysely.selectFrom('notes').select('text').execute();
  await new Promise((resolve) => setImmediate(resolve));
  const closing = kysely.destroy();
  expect(database.isOpen).toBe(true);
  release.resolve();
  expect(await working).toEqual([{ id: 1 }]);
  expect(await queued).toEqual([{ text: 'a' }]);
  await closing;
  expect(database.isOpen).toBe(false);
});

test('a read that meets the lock of another process waits in the thread of the writer', async () => {
  const database = new DatabaseSync(':memory:');
  database.exec('create table notes (id integer primary key, text text not null)');
  database.exec("insert into notes values (1, 'a')");
  const writer = createDirectEngine(database);
  const locked = { code: 'ERR_SQLITE_ERROR', errcode: 5 };
  const reader: SqliteEngine = {
    ...writer,
    isInTransaction: false,
    run: async () => {
      throw Object.assign(new Error('database is locked'), locked);
    },
  };
  const dialect = createNodeSqliteDialect({ writer, reader, queueTimeoutMs: 5_000 });
  await using kysely = new Kysely<Notes>({ dialect });
  expect(await kysely.selectFrom('notes').selectAll().execute()).toEqual([{ id: 1, text: 'a' }]);
});
