import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { createFavouriteStore } from './favourite-store.ts';

describeEachDatabase('the store of favourite services', (open) => {
  test('keeps those of each user, once, until they are taken back or the user is deleted', async () => {
    const database = await open();
    const users = createUserStore(database);
    const [ada, bob] = await users.createMissing(['ada', 'bob']);
    const store = createFavouriteStore(database);
    for (const name of ['wiki', 'wiki', 'board']) await store.set(ada?.id ?? '', name, true);
    await store.set(bob?.id ?? '', 'wiki', true);
    await store.set(ada?.id ?? '', 'board', false);
    expect([...(await store.listOfUser(ada?.id ?? ''))]).toEqual(['wiki']);
    await users.delete(ada?.id ?? '');
    expect([...(await store.listOfUser(ada?.id ?? ''))]).toEqual([]);
    expect([...(await store.listOfUser(bob?.id ?? ''))]).toEqual(['wiki']);
  });
});
