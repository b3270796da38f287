import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { advisoryLocks, workLocks } from './advisory-locks.ts';

const alice = {
  id: '1',
  name: 'alice',
  admin: 0,
  invited: 0,
  created_at: 1_700_000_000_000,
  last_activity_at: null,
  made_for: null,
  system_account: null,
};

test('no two uses of an advisory lock wait for one another', () => {
  const numbers = [advisoryLocks, workLocks].flatMap((locks) => Object.values(locks));
  expect(numbers).toEqual([...new Set(numbers)]);
});

describeEachDatabase('a database', (open) => {
  test('keeps what was written, times as numbers', async () => {
    const { kysely } = await open();
    await kysely.insertInto('users').values(alice).execute();
    expect(await kysely.selectFrom('users').selectAll().execute()).toEqual([
      // Who has no server stands between what runs and what has failed.
      { ...alice, server_rank: 3, suspended_at: null },
    ]);
  });

  test('undoes a whole transaction when its work fails', async () => {
    const database = await open();
    const failing = database.transaction(async (transaction) => {
      await transaction.insertInto('users').values(alice).execute();
      throw new Error('halfway');
    });
    await expect(failing).rejects.toThrow('halfway');
    expect(await database.kysely.selectFrom('users').selectAll().execute()).toEqual([]);
  });
});
