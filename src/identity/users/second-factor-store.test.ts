import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { Secret } from '../../platform/config/secret.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { createSecondFactorStore } from './second-factor-store.ts';
import { createUserStore } from './user-store.ts';

const sealer = createSealer([new Secret('first key')], 'second-factor');
const now = new Date(1000);

describeEachDatabase('the second factor store', (open) => {
  const openStore = async () => {
    const database = await open();
    const { id } = await createUserStore(database).create({ name: 'alice' });
    return { database, id, factors: createSecondFactorStore(database, { sealer }) };
  };

  const first = { totpSecret: 'A', step: 7, recoveryCodeHashes: [], now };

  test('keeps the secret encrypted', async () => {
    const { database, id, factors } = await openStore();
    expect(await factors.find(id)).toBeUndefined();
    const added = { ...first, totpSecret: 'TOTPSECRET', recoveryCodeHashes: ['a'] };
    expect(await factors.add(id, added)).toEqual({ issuesRecoveryCodes: true });
    const row = await database.kysely
      .selectFrom('second_factors')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(JSON.stringify(row)).not.toContain('TOTPSECRET');
    expect(await factors.find(id)).toEqual({ totpSecret: 'TOTPSECRET' });
  });

  test('never replaces a factor: of several at once, one is added', async () => {
    const { id, factors } = await openStore();
    const secrets = ['A', 'B', 'C'];
    const added = await Promise.all(
      secrets.map((totpSecret) => factors.add(id, { ...first, totpSecret })),
    );
    expect(added.filter((each) => each !== undefined)).toHaveLength(1);
    const kept = secrets.filter((_, index) => added[index] !== undefined);
    expect([(await factors.find(id))?.totpSecret]).toEqual(kept);
    await expect(factors.add('nobody', first)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('accepts each time step once and none before it (RFC 6238 §5.2)', async () => {
    const { id, factors } = await openStore();
    await factors.add(id, first);
    expect(await factors.takeStep(id, 7)).toBe(false);
    const atOnce = await Promise.all(Array.from({ length: 5 }, () => factors.takeStep(id, 8)));
    expect(atOnce.filter(Boolean)).toHaveLength(1);
    expect(await factors.takeStep(id, 6)).toBe(false);
  });

  test('never reads as absent because the key is gone', async () => {
    const { database, id, factors } = await openStore();
    await factors.add(id, first);
    const keyless = createSecondFactorStore(database, {
      sealer: createSealer([new Secret('another key')], 'second-factor'),
    });
    await expect(keyless.find(id)).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await factors.delete(id, { mayBeLast: true })).toBe(true);
    expect(await factors.delete(id, { mayBeLast: true })).toBe(false);
    expect(await factors.find(id)).toBeUndefined();
  });
});
