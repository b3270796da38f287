import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createFactorStores } from '../../../test/support/factor-stores.ts';
import { createRecoveryCodeStore } from './recovery-code-store.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('recovery codes', (open) => {
  const openStores = async () => {
    const database = await open();
    const users = createUserStore(database);
    const { id } = await users.create({ name: 'alice' });
    const { id: other } = await users.create({ name: 'bob' });
    const codes = createRecoveryCodeStore(database);
    return { database, id, other, codes, ...createFactorStores(database) };
  };

  test('come with the first factor of any kind, and stay while there is one', async () => {
    const { id, factors, passkeys, addPasskey, addApp, codes } = await openStores();
    expect(await addPasskey(id, 'one', ['x', 'y'])).toEqual({ issuesRecoveryCodes: true });
    expect(await addPasskey(id, 'two', ['z'])).toEqual({ issuesRecoveryCodes: false });
    expect(await addApp(id, ['z'])).toEqual({ issuesRecoveryCodes: false });
    expect(await codes.countOfUser(id)).toBe(2);
    const removal = { mayBeLast: true };
    await factors.delete(id, removal);
    await passkeys.remove(id, 'one', removal);
    expect(await codes.countOfUser(id)).toBe(2);
    await passkeys.removeAllOfUser(id);
    expect(await codes.countOfUser(id)).toBe(0);
    expect(await codes.take(id, 'x')).toBe(false);
    expect(await addApp(id, ['z'])).toEqual({ issuesRecoveryCodes: true });
  });

  test('are given once to a user who sets up two factors at once', async () => {
    const { id, addPasskey, codes } = await openStores();
    const given = await Promise.all([
      addPasskey(id, 'one', ['a1', 'a2']),
      addPasskey(id, 'two', ['b1', 'b2']),
    ]);
    expect(given.filter(({ issuesRecoveryCodes }) => issuesRecoveryCodes)).toHaveLength(1);
    expect(await codes.countOfUser(id)).toBe(2);
  });

  test('work once, for their user alone, also of many attempts at two hubs at once', async () => {
    const { database, id, other, addPasskey, codes } = await openStores();
    await addPasskey(id, 'one', ['x', 'y']);
    await addPasskey(other, 'two', ['z']);
    const remote = createRecoveryCodeStore(database);
    expect(await codes.take(other, 'x')).toBe(false);
    const attempts = [codes, remote, codes, remote].map((hub) => hub.take(id, 'x'));
    expect((await Promise.all(attempts)).filter(Boolean)).toHaveLength(1);
    expect(await codes.take(id, 'x')).toBe(false);
    expect(await codes.countOfUser(id)).toBe(1);
    expect(await codes.countOfUser(other)).toBe(1);
  });

  test('are replaced for users with a second factor only', async () => {
    const { id, other, addPasskey, codes } = await openStores();
    await addPasskey(id, 'one', ['x', 'y']);
    expect(await codes.replace(id, ['new'])).toBe(true);
    expect(await codes.take(id, 'y')).toBe(false);
    expect(await codes.take(id, 'new')).toBe(true);
    expect(await codes.replace(other, ['new'])).toBe(false);
    expect(await codes.countOfUser(other)).toBe(0);
  });
});
