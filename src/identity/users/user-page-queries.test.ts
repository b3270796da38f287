import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { explainQueryPlan, watchStatements } from '../../../test/support/statements.ts';
import { userSorts } from '../../../test/support/user-sorts.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { createUserStore } from './user-store.ts';

test('users who are searched are looked at once for all counts, and members of a group by indexes', async () => {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const users = createUserStore(database);
  using watch = watchStatements();
  const search = await watch.during(() => users.countByStatus({ nameFilter: 'x' }));
  expect(search.join().split(' like ')).toHaveLength(2);
  const [ofGroup = ''] = await watch.during(() => users.countByStatus({ groupName: 'staff' }));
  const plan = await explainQueryPlan(database, ofGroup);
  expect(plan).toContain('users_never_active');
  expect(plan).not.toMatch(
    /SCAN (?!CONSTANT|users USING INDEX users_(?:administrators|suspended))/,
  );
});

test('what walks over very many users is left to another thread', async () => {
  const log = pino({ level: 'silent' });
  const directory = mkdtempSync(join(tmpdir(), 'hub-test-'));
  try {
    await using database = await openDatabase('sqlite:hub.sqlite', { directory, log });
    const [few, many] = [4, 3].map((manyUsers) => createUserStore(database, { manyUsers }));
    await few?.createMissing(['ann', 'bob', 'cleo']);
    await few?.count();
    using watch = watchStatements();
    const searched: unknown[] = [];
    const searchesOf = async (users = few) => {
      const statements = await watch.during(async () => {
        searched.push(await users?.list({ offset: 0, limit: 5, nameFilter: 'o' }));
        searched.push(await users?.countByStatus({ nameFilter: 'o' }));
        searched.push(await users?.listNames({ nameFilter: 'o' }, 5));
      });
      return statements.filter((statement) => statement.includes(' like ')).length;
    };
    expect(await searchesOf(few)).toBe(4);
    expect(await searchesOf(many)).toBe(0);
    expect(searched.slice(0, 3)).toMatchObject([
      { items: [{ name: 'bob' }, { name: 'cleo' }], total: 2 },
      { all: 2, never_active: 2 },
      ['bob', 'cleo'],
    ]);
    expect(searched.slice(3)).toEqual(searched.slice(0, 3));
    await many?.createMissing(['otto']);
    expect((await many?.countByStatus({ nameFilter: 'o' }))?.all).toBe(3);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('no page of users is found by sorting all of them', async () => {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const users = createUserStore(database);
  await users.createMissing(['ann', 'bob', 'cleo']);
  using watch = watchStatements();
  const statements = await watch.during(async () => {
    for (const sort of userSorts) {
      await users.list({ offset: 0, limit: 1, sort });
      await users.list({ offset: 2, limit: 1, sort });
      for (const key of ['bob', '5,bob', ',bob']) {
        await users.list({ limit: 1, sort, edge: { side: 'after', key } });
      }
    }
  });
  // Five pages in each order, and the last one where nothing is after an edge.
  expect(statements.length).toBeGreaterThan(5 * userSorts.length);
  for (const statement of statements) {
    expect(await explainQueryPlan(database, statement), statement).toMatch(
      /^(?:SCAN|SEARCH) users USING (?:COVERING )?INDEX [^;]+$/,
    );
  }
});
