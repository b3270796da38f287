import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createPasskeyStore } from './passkey-store.ts';
import { createUserStore } from './user-store.ts';

const at = new Date(5000);
const added = {
  name: 'Laptop',
  publicKey: 'a key',
  signCount: 3,
  transports: ['internal'],
  verifiesUser: true,
  createdAt: new Date(1000),
};

describeEachDatabase('the passkey store', (open) => {
  const openStore = async () => {
    const database = await open();
    const users = createUserStore(database);
    const alice = await users.create({ name: 'alice' });
    const bob = await users.create({ name: 'bob' });
    const store = createPasskeyStore(database);
    const add = (userId: string, id: string) =>
      store.add({ ...added, id, userId }, { limit: 2, recoveryCodeHashes: [] });
    return { database, users, alice, bob, store, add };
  };

  test('keeps what was added, for its user alone', async () => {
    const { alice, bob, store, add } = await openStore();
    await add(alice.id, 'one');
    const passkey = { ...added, id: 'one', userId: alice.id, lastUsedAt: undefined };
    expect(await store.find('one')).toEqual(passkey);
    expect(await store.listOfUser(alice.id)).toEqual([passkey]);
    expect(await store.countOfUser(bob.id)).toBe(0);
    expect(await store.rename(bob.id, 'one', 'Mine')).toBe(false);
    expect(await store.remove(bob.id, 'one', { mayBeLast: true })).toBe(false);
    expect(await store.rename(alice.id, 'one', 'Phone')).toBe(true);
    expect((await store.find('one'))?.name).toBe('Phone');
    expect(await store.remove(alice.id, 'one', { mayBeLast: true })).toBe(true);
    expect(await store.find('one')).toBeUndefined();
  });

  test('takes no id twice, not even for another user, and no more than the limit', async () => {
    const { alice, bob, store, add } = await openStore();
    await add(alice.id, 'one');
    await expect(add(bob.id, 'one')).rejects.toMatchObject({ code: 'conflict' });
    const several = await Promise.allSettled(
      ['two', 'three', 'four'].map((id) => add(alice.id, id)),
    );
    expect(several.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await store.countOfUser(alice.id)).toBe(2);
    await expect(add('no user', 'five')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('accepts a counter only while it grows, or where there is none', async () => {
    const { alice, store, add } = await openStore();
    await add(alice.id, 'one');
    const passkey = { id: 'one', userId: alice.id, name: 'Laptop' };
    const use = (signCount: number) =>
      store.recordUse(passkey, { signCount, at, purpose: 'login' });
    expect([await use(3), await use(0), await use(5), await use(5), await use(4)]).toEqual([
      false,
      false,
      true,
      false,
      false,
    ]);
    expect(await store.find('one')).toMatchObject({ signCount: 5, lastUsedAt: at });
    await store.add(
      { ...added, id: 'none', userId: alice.id, signCount: 0 },
      { limit: 2, recoveryCodeHashes: [] },
    );
    const none = { id: 'none', userId: alice.id, name: 'Phone' };
    const useNone = { signCount: 0, at, purpose: 'login' };
    expect(await store.recordUse(none, useNone)).toBe(true);
    expect(await store.recordUse(none, useNone)).toBe(true);
    expect(await store.removeAllOfUser(alice.id)).toBe(2);
    expect(await store.recordUse(none, useNone)).toBe(false);
  });

  test('goes with its user', async () => {
    const { users, alice, store, add } = await openStore();
    await add(alice.id, 'one');
    await users.delete(alice.id);
    expect(await store.find('one')).toBeUndefined();
  });
});
