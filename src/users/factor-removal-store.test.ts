import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../test/support/databases.ts';
import { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { createPasskeyStore } from './passkey-store.ts';
import { createSecondFactorStore } from './second-factor-store.ts';
import { createUserStore } from './user-store.ts';

const now = new Date(1000);
const passkey = {
  name: 'Laptop',
  publicKey: 'a key',
  signCount: 0,
  transports: [],
  verifiesUser: true,
  createdAt: now,
};

describeEachDatabase('a user who needs a second factor', (open) => {
  const openStores = async () => {
    const database = await open();
    // The pool has a connection for each of two removals then, so that they run at once.
    await Promise.all([1, 2].map(() => database.transaction(() => setImmediate())));
    const { id } = await createUserStore(database).create({ name: 'alice' });
    const sealer = createSealer([new Secret('first key')], 'second-factor');
    const passkeys = createPasskeyStore(database);
    const factors = createSecondFactorStore(database, { sealer });
    const addPasskey = (passkeyId: string) =>
      passkeys.add(
        { ...passkey, id: passkeyId, userId: id },
        { limit: 10, recoveryCodeHashes: [] },
      );
    const addApp = async () => {
      await factors.begin(id, 'SECRET');
      await factors.confirm(id, { step: 1, recoveryCodeHashes: [], now });
    };
    return { id, passkeys, factors, addPasskey, addApp };
  };
  const removal = { mayBeLast: false };
  /** What became of removals at once, in order of their words. */
  const outcomesOf = async (removals: readonly Promise<boolean>[]) => {
    const told = removals.map((each) => each.catch(({ code }: { code: string }) => code));
    return (await Promise.all(told)).map(String).toSorted();
  };

  test('keeps one of two passkeys that are removed at once', async () => {
    const { id, passkeys, addPasskey } = await openStores();
    await addPasskey('one');
    await addPasskey('two');
    const removals = ['one', 'two'].map((each) => passkeys.remove(id, each, removal));
    expect(await outcomesOf(removals)).toEqual(['conflict', 'true']);
    expect(await passkeys.countOfUser(id)).toBe(1);
  });

  test('keeps the passkey or the app when both are removed at once', async () => {
    const { id, passkeys, factors, addPasskey, addApp } = await openStores();
    await addPasskey('one');
    await addApp();
    const removals = [passkeys.remove(id, 'one', removal), factors.delete(id, removal)];
    expect(await outcomesOf(removals)).toEqual(['conflict', 'true']);
    const isAppLeft = (await factors.find(id)) !== undefined;
    expect((await passkeys.countOfUser(id)) + (isAppLeft ? 1 : 0)).toBe(1);
  });

  test('is not helped by an app whose set-up has only begun', async () => {
    const { id, passkeys, factors, addPasskey } = await openStores();
    await addPasskey('one');
    await factors.begin(id, 'SECRET');
    await expect(passkeys.remove(id, 'one', removal)).rejects.toMatchObject({ code: 'conflict' });
    expect(await passkeys.remove(id, 'unknown', removal)).toBe(false);
    expect(await passkeys.remove(id, 'one', { mayBeLast: true })).toBe(true);
  });
});
