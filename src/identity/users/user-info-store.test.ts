import { expect, test } from 'vitest';
import { describeEachDatabase, recordAnnouncements } from '../../../test/support/databases.ts';
import { infoFromClaims, noInfo } from './user-info.ts';
import { createUserInfoStore } from './user-info-store.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('the store of user info', (open) => {
  const openStore = async () => {
    const database = await open();
    const users = createUserStore(database);
    const [ada, bob] = await users.createMissing(['ada', 'bob']);
    if (ada === undefined || bob === undefined) throw new Error('no users were made');
    return { database, users, ada, bob, store: createUserInfoStore(database) };
  };
  const claimed = infoFromClaims(
    {
      displayName: 'Ada Lovelace',
      email: 'ada@example.org',
      isEmailVerified: true,
      pictureUrl: 'https://example.org/ada.png',
    },
    'work',
  );

  test('keeps what is claimed, and writes it once', async () => {
    const { database, store, ada } = await openStore();
    expect(await store.of(ada.id)).toEqual(noInfo);
    const changes = recordAnnouncements(database);
    await store.sync(ada, claimed);
    expect(await store.of(ada.id)).toEqual(claimed);
    await store.sync(ada, claimed);
    expect(changes).toEqual([{ kind: 'user_info_changed', userId: ada.id }]);
    const emptied = infoFromClaims({}, 'work');
    await store.sync(ada, emptied);
    expect(await store.of(ada.id)).toEqual(emptied);
  });

  test('shows another process what has changed', async () => {
    const { database, store, ada, bob } = await openStore();
    const other = createUserInfoStore(database);
    await other.ofAll([ada.id, bob.id]);
    await store.change(ada, claimed);
    expect((await other.ofAll([ada.id, bob.id])).get(ada.id)).toEqual(claimed);
    await store.change(ada, noInfo);
    expect(await other.of(ada.id)).toEqual(noInfo);
  });

  test('goes with its user, and is not written for one who is gone', async () => {
    const { database, users, store, ada } = await openStore();
    await store.change(ada, claimed);
    await users.delete(ada.id);
    expect(await database.kysely.selectFrom('user_info').selectAll().execute()).toEqual([]);
    await store.sync(ada, claimed);
    await expect(store.change(ada, claimed)).rejects.toMatchObject({ code: 'not_found' });
    expect(await database.kysely.selectFrom('user_info').selectAll().execute()).toEqual([]);
  });

  test('is searched together with names, as far as the searcher may read it', async () => {
    const { users, store, ada, bob } = await openStore();
    await store.change(ada, { ...claimed, displayName: 'Élodie 100%' });
    await store.change(bob, { ...claimed, displayName: 'Ada', email: 'b@example.org' });
    const found = async (nameFilter: string, searchesInfoOf?: 'all' | string[]) => {
      const page = { offset: 0, limit: 10, nameFilter };
      const { items, total } = await users.list(
        searchesInfoOf === undefined ? page : { ...page, searchesInfoOf },
      );
      expect(total).toBe(items.length);
      return items.map(({ name }) => name);
    };
    expect(await found('ada', 'all')).toEqual(['ada', 'bob']);
    expect(await found('ÉLODIE', 'all')).toEqual(['ada']);
    expect(await found('00%', 'all')).toEqual(['ada']);
    expect(await found('0_%', 'all')).toEqual([]);
    expect(await found('@EXAMPLE.org', 'all')).toEqual(['ada', 'bob']);
    expect(await found('@example.org', ['bob'])).toEqual(['bob']);
    expect(await found('@example.org', [])).toEqual([]);
    expect(await found('@example.org')).toEqual([]);
    expect(await found('ada')).toEqual(['ada']);
  });
});
