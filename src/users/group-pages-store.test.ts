import { expect, test } from 'vitest';
import { createGroup } from '../../test/support/create-group.ts';
import { describeEachDatabase } from '../../test/support/databases.ts';
import type { PageAsked } from '../store/page-edge.ts';
import { createGroupPages } from './group-pages-store.ts';
import { createGroupStore } from './group-store.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('pages of groups', (open, dialect) => {
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
    expect(await pages.listGroups({ offset: 0, limit: 2 })).toEqual({
      items: [
        { name: 'Physics', origin: 'api', memberCount: 3 },
        { name: 'a_b', origin: 'config', memberCount: 1 },
      ],
      total: 3,
      isFirst: true,
      isLast: false,
    });
    const namesOf = async (options: {
      nameFilter?: string;
      onlyNames?: string[];
      offset?: number;
    }) =>
      (await pages.listGroups({ offset: 0, limit: 5, ...options })).items.map(({ name }) => name);
    expect(await namesOf({ offset: 2 })).toEqual(['axb']);
    expect(await namesOf({ nameFilter: 'A_B' })).toEqual(['a_b']);
    expect(await namesOf({ nameFilter: 'physic' })).toEqual(['Physics']);
    expect(await namesOf({ onlyNames: ['axb', 'none'] })).toEqual(['axb']);
  });

  test('list members with who put them in', async () => {
    const { groups, pages, pagesOfLarge } = await openStores();
    const { id } = await groups.getByName('Physics');
    expect(await pages.listMembers(id, { offset: 1, limit: 5 })).toEqual({
      items: [
        { name: 'ann', origin: 'api' },
        { name: 'bob', origin: 'api' },
      ],
      total: 3,
      isFirst: false,
      isLast: true,
    });
    expect(await pages.listMembers(id, { offset: 0, limit: 5, nameFilter: 'B' })).toMatchObject({
      items: [{ name: 'Bea' }, { name: 'bob' }],
      total: 2,
    });
    // However large the group, and from whichever end it is counted.
    for (const each of [pages, pagesOfLarge]) {
      for (const [offset, name] of ['Bea', 'ann', 'bob'].entries()) {
        const page = await each.listMembers(id, { offset, limit: 1 });
        expect(page).toMatchObject({ items: [{ name, origin: 'api' }], total: 3 });
        expect([page.isFirst, page.isLast]).toEqual([offset === 0, offset === 2]);
      }
      const beyond = await each.listMembers(id, { offset: 3, limit: 5 });
      expect(beyond).toMatchObject({ items: [], total: 3, isLast: true });
      const found = await each.listMembers(id, { offset: 1, limit: 5, nameFilter: 'b' });
      expect(found).toMatchObject({ items: [{ name: 'bob' }], total: 2 });
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
        const { items, ...page } = await list({ offset: 2, limit: 2, edge: { side, key } });
        expect(items.map(({ name }) => name)).toEqual(expected);
        expect(page).toMatchObject({ isFirst: false, isLast: false, ...ends });
      }
    };
    await expectAll(['after', 'm-1'], ['m-2', 'm-3']);
    await expectAll(['after', 'm-3'], ['m-4', 'm-5'], { isLast: true });
    await expectAll(['after', 'm-5'], [], { isLast: true });
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

  test('walk to a page from one shown before, until something changes', async () => {
    const { database, users, groups } = await openStores();
    const walked: unknown[] = [];
    const kysely = database.kysely.withPlugin({
      transformQuery({ node }) {
        const offset = node.kind === 'SelectQueryNode' ? node.offset?.offset : undefined;
        if (offset !== undefined && 'value' in offset) walked.push(offset.value);
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const pages = createGroupPages({ ...database, kysely }, { smallGroup: 0 });
    const { id } = await createGroup(groups, { name: 'year' });
    let names = Array.from({ length: 40 }, (_, index) => `m-${String(index).padStart(2, '0')}`);
    const [, first, second] = await users.createMissing(names);
    await groups.addMembers('year', names, 'api');
    const namesAt = async (offset: number) => {
      const { items } = await pages.listMembers(id, { offset, limit: 5 });
      return items.map(({ name }) => name);
    };
    const expectWalks = async (expected: readonly number[], ...offsets: number[]) => {
      walked.length = 0;
      for (const offset of offsets) {
        expect(await namesAt(offset)).toEqual(names.slice(offset, offset + 5));
      }
      // PostgreSQL tells of a change a second time, whenever it may be.
      if (dialect === 'sqlite') expect(walked).toEqual(expected);
    };
    await expectWalks([15, 2, 1, 0, 0], 20, 22, 14, 0, 35);
    // Who is not a member moves none.
    await users.create({ name: 'a-new' });
    await expectWalks([1], 21);

    await groups.removeMembers('year', ['m-00']);
    names = names.slice(1);
    await expectWalks([14, 1], 20, 21);
    await users.rename(first?.id ?? '', 'z-last');
    names = [...names.slice(1), 'z-last'];
    await expectWalks([14, 1], 20, 21);
    await users.delete(second?.id ?? '');
    names = names.slice(1);
    await expectWalks([13, 1], 20, 21);
    await groups.addMembers('year', ['ann'], 'api');
    names = ['ann', ...names];
    await expectWalks([14, 1], 20, 21);
  });
});
