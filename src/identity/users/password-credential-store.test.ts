import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createPasswordCredentialStore } from './password-credential-store.ts';
import { createUserStore } from './user-store.ts';

describeEachDatabase('the password credential store', (open) => {
  const openStore = async () => {
    const database = await open();
    await createUserStore(database).create({ name: 'alice' });
    return { database, credentials: createPasswordCredentialStore(database) };
  };

  test('finds the hash that was set last', async () => {
    const { credentials } = await openStore();
    expect(await credentials.findPasswordHash('alice')).toBeUndefined();
    await credentials.setPasswordHash('alice', 'first', { mustChange: true });
    expect(await credentials.findPasswordHash('alice')).toEqual({
      passwordHash: 'first',
      mustChange: true,
    });
    await credentials.setPasswordHash('alice', 'second');
    expect(await credentials.findPasswordHash('alice')).toEqual({
      passwordHash: 'second',
      mustChange: false,
    });
  });

  test('changes nothing when the tokens cannot be ended with it', async () => {
    const { database, credentials } = await openStore();
    await credentials.setPasswordHash('alice', 'first');
    await database.kysely.schema.dropTable('imported_tokens').execute();
    await database.kysely.schema.dropTable('access_tokens').execute();
    const change = credentials.setPasswordHash('alice', 'second', { endsApiTokens: true });
    await expect(change).rejects.toThrow();
    expect((await credentials.findPasswordHash('alice'))?.passwordHash).toBe('first');
  });

  test('stores another hash of a password only as long as the user has that password', async () => {
    const { credentials } = await openStore();
    const hash = async () => (await credentials.findPasswordHash('alice'))?.passwordHash;
    await credentials.setPasswordHash('alice', 'cheap');
    await credentials.rehashPassword('alice', 'dear', { replacing: 'cheap' });
    expect(await hash()).toBe('dear');
    await credentials.setPasswordHash('alice', 'of a new password');
    await credentials.rehashPassword('alice', 'dearer', { replacing: 'dear' });
    expect(await hash()).toBe('of a new password');
  });

  test('keeps no password for a user that is not there', async () => {
    const { credentials } = await openStore();
    const setting = credentials.setPasswordHash('ghost', 'hash');
    await expect(setting).rejects.toMatchObject({ code: 'not_found' });
    expect(await credentials.findPasswordHash('ghost')).toBeUndefined();
  });
});
