import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import { userSorts } from '../../../test/support/user-sorts.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import type { RowChange } from '../../platform/store/tables.ts';
import { createGroupStore } from './group-store.ts';
import { createInvitationStore, type InvitationPurpose } from './invitation-store.ts';
import type { UserFilter } from './user-filters-store.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('lists of users', (open) => {
  const openStore = async () => {
    const database = await open();
    return { database, users: createUserStore(database) };
  };

  test('lists pages in a stable order with the total of all pages', async () => {
    const { users } = await openStore();
    for (const name of ['b', 'B', 'a', 'ä']) await users.create({ name });
    const page = await users.list({ offset: 1, limit: 2 });
    expect(page.items.map(({ name }) => name)).toEqual(['a', 'b']);
    expect(page.total).toBe(4);
    const all = await users.list({ offset: 0, limit: 10 });
    expect(all.items.map(({ name }) => name)).toEqual(['B', 'a', 'b', 'ä']);
    const reversed = await users.list({ offset: 0, limit: 10, sort: '-name' });
    expect(reversed.items.map(({ name }) => name)).toEqual(['ä', 'b', 'a', 'B']);
  });

  test('counts again after each change, and only then', async () => {
    const { users } = await openStore();
    const totalNow = async () => (await users.list({ offset: 0, limit: 1 })).total;
    expect(await totalNow()).toBe(0);
    const [alice] = await users.createMissing(['alice', 'bob', 'carol']);
    expect(await totalNow()).toBe(3);
    await users.create({ name: 'dave' });
    await users.ensure('erin');
    expect(await totalNow()).toBe(5);
    await users.delete(alice?.id ?? '');
    expect(await totalNow()).toBe(4);
    expect(await users.count()).toBe(4);
  });

  test('lists the part at an offset, in every order', async () => {
    const { users } = await openStore();
    const [, bob, cleo, dan] = await users.createMissing(['ann', 'bob', 'cleo', 'dan', 'eve']);
    const activity = [bob, cleo, dan].map((user, index) => [user?.id ?? '', new Date(9 - index)]);
    await users.recordActivity(new Map(activity as [string, Date][]));
    for (const sort of userSorts) {
      const listed = async (offset: number, limit: number) =>
        (await users.list({ offset, limit, sort })).items.map(({ name }) => name);
      const all = await listed(0, 5);
      expect(new Set(all).size, sort).toBe(5);
      for (let offset = 0; offset <= 6; offset += 1) {
        for (const limit of [1, 2, 4, 9]) {
          expect(await listed(offset, limit), `${sort} ${offset} ${limit}`).toEqual(
            all.slice(offset, offset + limit),
          );
        }
      }
    }
  });

  test('goes on where a page ended, in every order, whoever comes or goes meanwhile', async () => {
    for (const sort of userSorts) {
      const { database, users } = await openStore();
      const made = await users.createMissing(['ann', 'bob', 'cleo', 'dan', 'eve', 'fay']);
      const idOf = (name: string) => made.find((user) => user.name === name)?.id ?? '';
      // Three were never active, and two at the same time.
      const seen = { bob: 9, dan: 9, fay: 4 };
      await users.recordActivity(
        new Map(Object.entries(seen).map(([name, ms]) => [idOf(name), new Date(ms)])),
      );
      for (const [name, state] of [
        ['ann', 'running'],
        ['cleo', 'running'],
        ['dan', 'starting'],
      ] as const) {
        await addServer(database, idOf(name), state);
      }
      const all = (await users.list({ offset: 0, limit: 9, sort })).items;
      const names = all.map(({ name }) => name);
      const keyAt = (index: number) => all[index]?.key ?? '';
      const at = async (side: 'after' | 'before', index: number, filter: UserFilter = {}) => {
        const edge = { side, key: keyAt(index) };
        const page = await users.list({ limit: 2, sort, edge, ...filter });
        const { isFirst, isLast } = page;
        return { names: page.items.map(({ name }) => name), isFirst, isLast };
      };
      const part = (from: number, ends = {}) => ({
        names: names.slice(from, from + 2),
        ...{ isFirst: false, isLast: false },
        ...ends,
      });
      for (const filter of [{}, { onlyNames: names }]) {
        expect(await at('after', 0, filter), sort).toEqual(part(1));
        expect(await at('after', 1, filter), sort).toEqual(part(2));
        expect(await at('after', 2, filter), sort).toEqual(part(3));
        expect(await at('after', 3, filter), sort).toEqual(part(4, { isLast: true }));
        expect(await at('after', 5, filter), sort).toEqual(part(4, { isLast: true }));
        expect(await at('before', 5, filter), sort).toEqual(part(3));
        expect(await at('before', 4, filter), sort).toEqual(part(2));
        expect(await at('before', 3, filter), sort).toEqual(part(1));
        // Fewer than a page are before it.
        expect(await at('before', 2, filter), sort).toEqual(part(0, { isFirst: true }));
        expect(await at('before', 1, filter), sort).toEqual(part(0, { isFirst: true }));
      }
      // One of the first page and the one at the edge are deleted.
      await users.delete(all[0]?.id ?? '');
      await users.delete(all[1]?.id ?? '');
      expect(await at('after', 1), sort).toEqual(part(2));
      // One comes before it.
      const first = await users.create({ name: '0' });
      const { created_at, last_activity_at } = await database.kysely
        .selectFrom('users')
        .selectAll()
        .where('id', '=', all[2]?.id ?? '')
        .executeTakeFirstOrThrow();
      const isUp = !sort.startsWith('-');
      await database.kysely
        .updateTable('users')
        .set({
          name: isUp ? '0' : 'z',
          created_at: created_at + (isUp ? -1 : 1),
          last_activity_at: isUp ? null : (last_activity_at ?? 0) + 100,
          server_rank: isUp ? 0 : 9,
        })
        .where('id', '=', first.id)
        .execute();
      expect(await at('after', 1), sort).toEqual(part(2));
      const before = await users.list({
        offset: 0,
        limit: 2,
        sort,
        edge: { side: 'before', key: keyAt(4) },
      });
      expect(
        before.items.map(({ name }) => name),
        sort,
      ).toEqual(names.slice(2, 4));
      expect(before.isFirst, sort).toBe(false);
    }
  });

  test('takes an edge that cannot be for none', async () => {
    const { users } = await openStore();
    await users.createMissing(['ann', 'bob']);
    for (const sort of ['created', 'server'] as const) {
      for (const key of ['', 'x', ',', 'x,ann', '12', `${'9'.repeat(30)},ann`]) {
        const edge = { side: 'after', key } as const;
        const page = await users.list({ offset: 1, limit: 5, sort, edge });
        expect(page, key).toMatchObject({ items: [{ name: 'bob' }], total: 2, isLast: true });
      }
      const late = { side: 'after', key: `${'9'.repeat(15)},ann` } as const;
      const page = await users.list({ offset: 1, limit: 5, sort, edge: late });
      // Nothing is after it any more.
      expect(page).toMatchObject({ items: [{ name: 'ann' }, { name: 'bob' }], isLast: true });
    }
  });

  test('filters by a part of the name in which % and _ mean themselves', async () => {
    const { users } = await openStore();
    for (const name of ['Alice', 'malice', 'a_b', 'axb', '100%']) await users.create({ name });
    const namesWith = async (nameFilter: string) =>
      (await users.list({ offset: 0, limit: 10, nameFilter })).items.map(({ name }) => name);
    expect(await namesWith('LIC')).toEqual(['Alice', 'malice']);
    expect(await namesWith('a_b')).toEqual(['a_b']);
    expect(await namesWith('%')).toEqual(['100%']);
  });

  test('userSorts by activity, those who were never active first', async () => {
    const { users } = await openStore();
    const [, bob, carol] = [
      await users.create({ name: 'alice' }),
      await users.create({ name: 'bob' }),
      await users.create({ name: 'carol' }),
    ];
    await users.recordActivity(
      new Map([
        [bob.id, new Date(2000)],
        [carol.id, new Date(1000)],
        ['unknown', new Date(3000)],
      ]),
    );
    const namesBy = async (sort: 'lastActivity' | '-lastActivity') =>
      (await users.list({ offset: 0, limit: 10, sort })).items.map(({ name }) => name);
    expect(await namesBy('lastActivity')).toEqual(['alice', 'carol', 'bob']);
    expect(await namesBy('-lastActivity')).toEqual(['bob', 'carol', 'alice']);
  });

  test('userSorts by the state of the default server, whatever becomes of it', async () => {
    const { database, users } = await openStore();
    const { kysely } = database;
    const made = await users.createMissing(['ann', 'bob', 'cleo', 'dan', 'eve', 'fay', 'gus']);
    const idOf = (name: string) => made.find((user) => user.name === name)?.id ?? '';
    for (const [name, state] of [
      ['bob', 'stopped'],
      ['cleo', 'stopping'],
      ['dan', 'starting'],
      ['eve', 'running'],
      ['fay', 'running'],
      ['gus', 'stopped'],
    ] as const) {
      await addServer(database, idOf(name), state);
    }
    const change = (name: string, set: RowChange<'servers'>) =>
      kysely.updateTable('servers').set(set).where('user_id', '=', idOf(name)).execute();
    await change('bob', { failure: '{}' });
    const listed = async (sort: 'server' | '-server') =>
      (await users.list({ offset: 0, limit: 10, sort })).items.map(({ name }) => name).join(' ');
    expect(await listed('server')).toBe('eve fay dan cleo ann gus bob');
    expect(await listed('-server')).toBe('bob gus ann cleo dan fay eve');
    await change('bob', { state: 'starting' });
    await change('dan', { state: 'running', failure: '{}' });
    await change('eve', { state: 'stopped' });
    expect(await listed('server')).toBe('dan fay bob cleo ann eve gus');
    // It becomes a named one, and the default one of another is removed with them.
    await change('fay', { name: 'lab' });
    await kysely.deleteFrom('servers').where('user_id', '=', idOf('cleo')).execute();
    expect(await listed('server')).toBe('dan bob ann cleo eve fay gus');
    await change('fay', { state: 'starting' });
    expect(await listed('server')).toBe('dan bob ann cleo eve fay gus');
    expect(await users.delete(idOf('dan'))).toBe(true);
    expect(await listed('server')).toBe('bob ann cleo eve fay gus');
  });

  test('lists only the given names, however many are given', async () => {
    const { users } = await openStore();
    for (const name of ['alice', 'bob']) await users.create({ name });
    const others = Array.from({ length: 70_000 }, (_, index) => `user-${index}`);
    const page = await users.list({ offset: 0, limit: 10, onlyNames: ['bob', ...others] });
    expect(page).toMatchObject({ total: 1, items: [{ name: 'bob' }] });
    expect((await users.list({ offset: 0, limit: 10, onlyNames: [] })).total).toBe(0);
  });

  test('lists by the state of servers', async () => {
    const { database, users } = await openStore();
    for (const [name, state] of [
      ['off', 'stopped'],
      ['soon', 'starting'],
      ['on', 'running'],
    ] as const) {
      await addServer(database, (await users.create({ name })).id, state);
    }
    for (const name of ['near', 'lost']) {
      await enterInstance(database, { id: `hub of ${name}` });
      await addServer(database, (await users.create({ name })).id, 'running', `hub of ${name}`);
    }
    await endLease(database, 'hub of lost');
    await users.create({ name: 'none' });
    const namesIn = async (serverState: 'active' | 'ready' | 'inactive') =>
      (await users.list({ offset: 0, limit: 10, serverState })).items.map(({ name }) => name);
    expect(await namesIn('active')).toEqual(['lost', 'near', 'on', 'soon']);
    expect(await namesIn('ready')).toEqual(['near', 'on']);
    expect(await namesIn('inactive')).toEqual(['none', 'off']);
  });

  test('lists and counts by what is asked for in the administration', async () => {
    const { database, users } = await openStore();
    const made = await users.createMissing(['ann', 'bob', 'cleo', 'dan', 'eve']);
    const idOf = (name: string) => made.find((user) => user.name === name)?.id ?? '';
    await addServer(database, idOf('ann'), 'running');
    await addServer(database, idOf('bob'), 'starting');
    await addServer(database, idOf('cleo'), 'stopped');
    await addServer(database, idOf('dan'), 'stopped');
    const failure = JSON.stringify({ message: 'It broke.', at: new Date(0), output: [] });
    await database.kysely
      .updateTable('servers')
      .set({ failure })
      .where('user_id', 'in', [idOf('cleo'), idOf('ann')])
      .execute();
    await users.setAdmin(idOf('eve'), true);
    await users.recordActivity(new Map([[idOf('ann'), new Date(5)]]));
    const groups = createGroupStore(database);
    await createGroup(groups, { name: 'staff' });
    await groups.addMembers('staff', ['bob', 'eve'], 'api');

    const namesOf = async (filter: UserFilter) => {
      const { items, total } = await users.list({ offset: 0, limit: 10, ...filter });
      expect(items).toHaveLength(total);
      expect(await users.listNames(filter, 10)).toEqual(items.map(({ name }) => name));
      return items.map(({ name }) => name).join(' ');
    };
    expect(await namesOf({ status: 'running' })).toBe('ann');
    expect(await namesOf({ status: 'starting' })).toBe('bob');
    // That of ann has failed before, and runs now.
    expect(await namesOf({ status: 'failed' })).toBe('cleo');
    expect(await namesOf({ status: 'never_active' })).toBe('bob cleo dan eve');
    expect(await namesOf({ status: 'administrator' })).toBe('eve');
    expect(await namesOf({ groupName: 'staff' })).toBe('bob eve');
    expect(await namesOf({ groupName: 'no such group' })).toBe('');
    expect(await namesOf({ groupName: 'staff', status: 'starting', nameFilter: 'B' })).toBe('bob');
    expect(await namesOf({ status: 'never_active', onlyNames: ['ann', 'dan'] })).toBe('dan');

    expect(await users.countByStatus({})).toEqual({
      all: 5,
      running: 1,
      starting: 1,
      failed: 1,
      never_active: 4,
      administrator: 1,
      suspended: 0,
      invited: 0,
      invitation_expiring: 0,
      invitation_expired: 0,
    });
    expect(await users.countByStatus({ groupName: 'staff', nameFilter: 'e' })).toEqual({
      all: 1,
      running: 0,
      starting: 0,
      failed: 0,
      never_active: 1,
      administrator: 1,
      suspended: 0,
      invited: 0,
      invitation_expiring: 0,
      invitation_expired: 0,
    });
    expect(await users.countByStatus({ onlyNames: ['ann', 'cleo'] })).toMatchObject({
      all: 2,
      running: 1,
      failed: 1,
    });
    // However they are counted, those are the same.
    const names = made.map(({ name }) => name);
    for (const groupName of [undefined, 'staff', 'no such group']) {
      const counts = await users.countByStatus({ groupName });
      expect(counts, groupName).toEqual(await users.countByStatus({ groupName, onlyNames: names }));
      expect(counts.administrator, groupName).toBe(groupName === 'no such group' ? 0 : 1);
    }
    await users.createMissing(['fay']);
    expect((await users.countByStatus({})).all).toBe(6);

    // Links of a week, of a day, of yesterday; one that was used; one for another password.
    const invitations = createInvitationStore(database);
    const invite = async (
      name: string,
      days: number,
      purpose: InvitationPurpose = 'invitation',
    ) => {
      const { id: userId } = await users.getByName(name);
      const expiresAt = new Date(Date.now() + days * 86_400_000);
      return invitations.create({ userId, purpose, createdBy: 'ann', expiresAt });
    };
    await invite('bob', 7);
    await invite('cleo', 1);
    await invite('dan', -1);
    // She is here in another way.
    await invite('ann', -1);
    await invitations.takeInvitation(hashSecret((await invite('eve', 7)).secret), new Date());
    await invite('fay', 7, 'password_reset');
    expect(await namesOf({ status: 'invited' })).toBe('bob cleo');
    expect(await namesOf({ status: 'invitation_expiring' })).toBe('cleo');
    expect(await namesOf({ status: 'invitation_expired' })).toBe('dan');
    expect(await namesOf({ status: 'invited', groupName: 'staff' })).toBe('bob');
  });
});
