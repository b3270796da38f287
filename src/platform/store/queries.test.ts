import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { prepareQuery, textsIn } from './queries.ts';

describeEachDatabase('a prepared query', (open) => {
  test('is described once and asked with any parameters', async () => {
    const database = await open();
    const { kysely } = database;
    await createUserStore(database).createMissing(['ann', 'bob', 'cleo']);
    let descriptions = 0;
    const find = prepareQuery(kysely, (given: { names: string; other: string; max: number }) => {
      descriptions += 1;
      return kysely
        .selectFrom('users')
        .select('name')
        .where((where) =>
          where.or([
            where('name', 'in', textsIn(given.names, database)),
            where('name', '=', given.other),
          ]),
        )
        .where('invited', '=', 0)
        .orderBy('name')
        .limit(given.max);
    });
    expect(await find({ names: '["bob","none"]', other: 'cleo', max: 9 })).toEqual([
      { name: 'bob' },
      { name: 'cleo' },
    ]);
    const both = await Promise.all([
      find({ names: '["bob"]', other: 'ann', max: 1 }),
      find({ names: '[]', other: "'or 1=1--", max: 9 }),
    ]);
    expect(both).toEqual([[{ name: 'ann' }], []]);
    expect(descriptions).toBe(1);
  });
});
