import { type Kysely, sql } from 'kysely';
import { pino } from 'pino';
import { beforeAll, describe, expect, test } from 'vitest';
import { usePostgres } from '../../../test/support/databases.ts';
import { hasPostgres } from '../../../test/support/postgres.ts';
import { openPostgresConnection } from './postgres-connection.ts';

interface Words {
  words: { word: string; follows?: string | null };
}

const log = pino({ level: 'silent' });

describe.skipIf(!hasPostgres())('the last statement of a transaction on PostgreSQL', () => {
  const cluster = usePostgres();
  let url: string;
  beforeAll(async () => {
    url = await cluster().createDatabase();
    await using opened = open();
    await sql`create table words (word text primary key, follows text references words (word) deferrable initially deferred)`.execute(
      opened.kysely,
    );
  });

  function open() {
    const { kysely, close } = openPostgresConnection<Words>({ url, log });
    return { kysely, [Symbol.asyncDispose]: close };
  }

  const insert = (kysely: Kysely<Words>, word: string) =>
    kysely.insertInto('words').values({ word }).compile();
  const wordsIn = async (kysely: Kysely<Words>) =>
    (await kysely.selectFrom('words').select('word').orderBy('word').execute()).map(
      ({ word }) => word,
    );

  /** Inserts one word, and another last. */
  const insertBoth = (kysely: Kysely<Words>, first: string, last: string) =>
    kysely.transaction().execute(async (transaction) => {
      await transaction.executeQuery(insert(transaction, first));
      await transaction.executeQuery({ ...insert(transaction, last), isLast: true } as never);
    });

  test('is committed with all before it', async () => {
    await using opened = open();
    await insertBoth(opened.kysely, 'one', 'two');
    expect(await wordsIn(opened.kysely)).toEqual(['one', 'two']);
  });

  test('keeps what it says, whatever characters stand in it', async () => {
    await using opened = open();
    const hostile = [`it's`, `back\\'; drop table words; --`, '$1 and $2', 'zwölf\n🙂', ''];
    for (const [index, last] of hostile.entries()) {
      await insertBoth(opened.kysely, `before-${index}`, last);
    }
    await opened.kysely.transaction().execute(async (transaction) => {
      const follower = transaction.insertInto('words').values({ word: 'follower', follows: null });
      await transaction.executeQuery({ ...follower.compile(), isLast: true } as never);
    });
    expect(await wordsIn(opened.kysely)).toEqual(expect.arrayContaining([...hostile, 'follower']));
  });

  test('that fails undoes all before it, says why, and leaves the connection to others', async () => {
    await using opened = open();
    const before = await wordsIn(opened.kysely);
    await insertBoth(opened.kysely, 'taken', 'other');
    await expect(insertBoth(opened.kysely, 'new', 'taken')).rejects.toMatchObject({
      code: '23505',
    });
    expect(await wordsIn(opened.kysely)).toEqual([...before, 'other', 'taken'].toSorted());
    // As many as there are connections: each is outside of a transaction.
    const statuses = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const { rows } = await sql<{ own: boolean }>`
          select now() = statement_timestamp() as own`.execute(opened.kysely);
        return rows[0]?.own;
      }),
    );
    expect(statuses).toEqual(statuses.map(() => true));
  });

  test('is not committed when only the commit finds what is wrong', async () => {
    await using opened = open();
    const before = await wordsIn(opened.kysely);
    const dangling = opened.kysely.transaction().execute(async (transaction) => {
      const last = sql`insert into words values ('late', 'nothing')`.compile(transaction);
      await transaction.executeQuery({ ...last, isLast: true } as never);
    });
    await expect(dangling).rejects.toMatchObject({ code: '23503' });
    expect(await wordsIn(opened.kysely)).toEqual(before);
  });

  test('fails with a connection that is lost before its answer', async () => {
    await using opened = open();
    await using other = open();
    const before = await wordsIn(opened.kysely);
    const lost = opened.kysely.transaction().execute(async (transaction) => {
      const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(
        transaction,
      );
      await transaction.executeQuery(insert(transaction, 'lost'));
      await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(other.kysely);
      await transaction.executeQuery({ ...insert(transaction, 'also'), isLast: true } as never);
    });
    await expect(lost).rejects.toMatchObject({ code: 'storage_unavailable' });
    await expect.poll(() => wordsIn(opened.kysely).catch(() => undefined)).toEqual(before);
  });
});
