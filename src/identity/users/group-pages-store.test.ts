import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { lastPage, type PageAsked } from '../../platform/store/page-edge.ts';
import { createGroupPages } from './group-pages-store.ts';
import { createGroupStore } from './group-store.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('pages of groups', (open) => {
  const openStores = async () => {
    const database = await open();
    const users = createUserStore(database);
    await users.createMissing(['ann', 'bob', 'Bea', 'cleo']);
    const groups = createGroupStore(database);
    await createGroup(groups, { name: 'Physics' });
    await createGroup(groups, { name: 'a_b', origin: 'config' });
    await createGroup(groups, { name: 'axb' });
    await groups.addMembers('Physics', ['ann', 'bob', 'Bea'], 'api');
    await groups.syncMembershipsOf('ann', ['a_b'], 'github');
    const pagesOfLarge = createGroupPages(database, { smallGroup: 0 });
    return { database, users, groups, pages: createGroupPages(database), pagesOfLarge };
  };

  test('tell how many members each has', async () => {
    const { pages } = await openStores();
    expect(await pages.listGroups({ limit: 2 })).toEqual({
      items: [
        { name: 'Physics', origin: 'api', memberCount: 3 },
        { name: 'a_b', origin: 'config', memberCount: 1 },
      ],
      total: 3,
      isFirst: true,
      isLast: false,
    });
    const namesOf = async (options: { nameFilter?: string; onlyNames?: string[] }) =>
      (await pages.listGroups({ limit: 5, ...options })).items.map(({ name }) => name);
    expect(await namesOf({ nameFilter: 'A_B' })).toEqual(['a_b']);
    expect(await namesOf({ nameFilter: 'physic' })).toEqual(['Physics']);
    expect(await namesOf({ onlyNames: ['axb', 'none'] })).toEqual(['axb']);
  });

  test('list members with who put them in', async () => {
    const { groups, pages, pagesOfLarge } = await openStores();
    const { id } = await groups.getByName('Physics');
    expect(await pages.listMembers(id, { limit: 5, edge: { side: 'after', key: 'Bea' } })).toEqual({
      items: [
        { name: 'ann', origin: 'api' },
        { name: 'bob', origin: 'api' },
      ],
      total: 3,
      isFirst: false,
      isLast: true,
    });
    expect(await pages.listMembers(id, { limit: 5, nameFilter: 'B' })).toMatchObject({
      items: [{ name: 'Bea' }, { name: 'bob' }],
      total: 2,
    });
    // However large the group.
    for (const each of [pages, pagesOfLarge]) {
      const first = await each.listMembers(id, { limit: 1 });
      expect(first).toMatchObject({ items: [{ name: 'Bea' }], isFirst: true, isLast: false });
      const last = await each.listMembers(id, { limit: 1, edge: lastPage });
      expect(last).toMatchObject({ items: [{ name: 'bob' }], isFirst: false, isLast: true });
      const whole = await each.listMembers(id, { limit: 5, edge: lastPage });
      expect(whole).toMatchObject({ total: 3, isFirst: true, isLast: true });
      expect(whole.items.map(({ name }) => name)).toEqual(['Bea', 'ann', 'bob']);
    }
    expect(await pages.membershipsOf('ann')).toEqual([
      { name: 'Physics', origin: 'api' },
      { name: 'a_b', origin: 'github' },
    ]);
  });

  test('go on where a page ended, whatever comes or goes meanwhile', async () => {
    const { users, groups, pages, pagesOfLarge } = await openStores();
    const { id } = await createGroup(groups, { name: 'year' });
    const names = ['m-0', 'm-1', 'm-2', 'm-3', 'm-4', 'm-5'];
    const made = await users.createMissing(names);
    await groups.addMembers('year', names, 'api');
    for (const name of names) await createGroup(groups, { name });
    const lists = [
      (options: PageAsked) => pages.listMembers(id, options),
      (options: PageAsked) => pagesOfLarge.listMembers(id, options),
      (options: PageAsked) => pages.listMembers(id, { ...options, nameFilter: 'M-' }),
      (options: PageAsked) => pages.listGroups({ ...options, nameFilter: 'm-' }),
    ];
    const expectAll = async (
      [side, key]: readonly ['after' | 'before', string],
      expected: readonly string[],
      ends: object = {},
    ) => {
      for (const list of lists) {
        const { items, ...page } = await list({ limit: 2, edge: { side, key } });
        expect(items.map(({ name }) => name)).toEqual(expected);
        expect(page).toMatchObject({ isFirst: false, isLast: false, ...ends });
      }
    };
    await expectAll(['after', 'm-1'], ['m-2', 'm-3']);
    await expectAll(['after', 'm-3'], ['m-4', 'm-5'], { isLast: true });
    await expectAll(['after', 'm-5'], ['m-4', 'm-5'], { isLast: true });
    await expectAll(['before', 'm-4'], ['m-2', 'm-3']);
    await expectAll(['before', 'm-2'], ['m-0', 'm-1'], { isFirst: true });
    await expectAll(['before', 'm-1'], ['m-0', 'm-1'], { isFirst: true });

    for (const index of [0, 1]) {
      await users.delete(made[index]?.id ?? '');
      await groups.delete(names[index] ?? '');
    }
    const newNames = ['m--', 'm-.', 'm-.x'];
    await users.createMissing(newNames);
    await groups.addMembers('year', newNames, 'api');
    for (const name of newNames) await createGroup(groups, { name });
    await expectAll(['after', 'm-1'], ['m-2', 'm-3'], { total: 7 });
    await expectAll(['before', 'm-2'], ['m-.', 'm-.x'], { total: 7 });
  });
});
