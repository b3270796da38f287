import { DatabaseSync } from 'node:sqlite';
import { Kysely, sql } from 'kysely';
import { expect, test } from 'vitest';
import { createNodeSqliteDialect } from './node-sqlite-dialect.ts';
import { createDirectEngine } from './sqlite-engine.ts';

interface Notes {
  notes: { id: number; text: string };
}

async function open({ queueTimeoutMs = 5000 } = {}) {
  const database = new DatabaseSync(':memory:');
  database.exec('create table notes (id integer primary key, text text not null)');
  const kysely = new Kysely<Notes>({
    dialect: createNodeSqliteDialect({
      writer: createDirectEngine(database),
      lockTimeoutMs: 0,
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
