import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createFactorStores } from '../../../test/support/factor-stores.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('a user who needs a second factor', (open) => {
  const openStores = async () => {
    const database = await open();
    // The pool has a connection for each of two removals then, so that they run at once.
    await Promise.all([1, 2].map(() => database.transaction(() => setImmediate())));
    const { id } = await createUserStore(database).create({ name: 'alice' });
    return { id, ...createFactorStores(database) };
  };
  const removal = { mayBeLast: false };
  /** What became of removals at once, in order of their words. */
  const outcomesOf = async (removals: readonly Promise<boolean>[]) => {
    const reported = removals.map((each) => each.catch(({ code }: { code: string }) => code));
    return (await Promise.all(reported)).map(String).toSorted();
  };

  test('keeps one of two passkeys that are removed at once', async () => {
    const { id, passkeys, addPasskey } = await openStores();
    await addPasskey(id, 'one');
    await addPasskey(id, 'two');
    const removals = ['one', 'two'].map((each) => passkeys.remove(id, each, removal));
    expect(await outcomesOf(removals)).toEqual(['conflict', 'true']);
    expect(await passkeys.countOfUser(id)).toBe(1);
  });

  test('keeps the passkey or the app when both are removed at once', async () => {
    const { id, passkeys, factors, addPasskey, addApp } = await openStores();
    await addPasskey(id, 'one');
    await addApp(id);
    const removals = [passkeys.remove(id, 'one', removal), factors.delete(id, removal)];
    expect(await outcomesOf(removals)).toEqual(['conflict', 'true']);
    const isAppLeft = (await factors.find(id)) !== undefined;
    expect((await passkeys.countOfUser(id)) + (isAppLeft ? 1 : 0)).toBe(1);
  });

  test('refuses the last passkey', async () => {
    const { id, passkeys, addPasskey } = await openStores();
    await addPasskey(id, 'one');
    await expect(passkeys.remove(id, 'one', removal)).rejects.toMatchObject({ code: 'conflict' });
    expect(await passkeys.remove(id, 'unknown', removal)).toBe(false);
    expect(await passkeys.remove(id, 'one', { mayBeLast: true })).toBe(true);
  });
});
