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

  test('keeps the secret encrypted and unconfirmed until a code was shown', async () => {
    const { database, id, factors } = await openStore();
    expect(await factors.find(id)).toBeUndefined();
    await factors.begin(id, 'TOTPSECRET');
    const row = await database.kysely
      .selectFrom('second_factors')
      .selectAll()
      .executeTakeFirstOrThrow();
    expect(JSON.stringify(row)).not.toContain('TOTPSECRET');
    expect(await factors.find(id)).toEqual({
      totpSecret: 'TOTPSECRET',
      confirmedAt: undefined,
    });
    await factors.begin(id, 'OTHERSECRET');
    expect(await factors.confirm(id, { step: 7, recoveryCodeHashes: ['a'], now })).toEqual({
      issuesRecoveryCodes: true,
    });
    expect(await factors.find(id)).toEqual({
      totpSecret: 'OTHERSECRET',
      confirmedAt: now,
    });
  });

  test('never replaces a confirmed factor', async () => {
    const { id, factors } = await openStore();
    await factors.begin(id, 'A');
    await factors.confirm(id, { step: 7, recoveryCodeHashes: [], now });
    await expect(factors.begin(id, 'B')).rejects.toMatchObject({ code: 'conflict' });
    expect(await factors.confirm(id, { step: 8, recoveryCodeHashes: [], now })).toBeUndefined();
    expect((await factors.find(id))?.totpSecret).toBe('A');
    await expect(factors.begin('nobody', 'B')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('accepts each time step once and none before it (RFC 6238 §5.2)', async () => {
    const { id, factors } = await openStore();
    await factors.begin(id, 'A');
    await factors.confirm(id, { step: 7, recoveryCodeHashes: [], now });
    expect(await factors.takeStep(id, 7)).toBe(false);
    const atOnce = await Promise.all(Array.from({ length: 5 }, () => factors.takeStep(id, 8)));
    expect(atOnce.filter(Boolean)).toHaveLength(1);
    expect(await factors.takeStep(id, 6)).toBe(false);
  });

  test('never reads as absent because the key is gone', async () => {
    const { database, id, factors } = await openStore();
    await factors.begin(id, 'A');
    const keyless = createSecondFactorStore(database, {
      sealer: createSealer([new Secret('another key')], 'second-factor'),
    });
    await expect(keyless.find(id)).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await factors.delete(id, { mayBeLast: true })).toBe(true);
    expect(await factors.delete(id, { mayBeLast: true })).toBe(false);
    expect(await factors.find(id)).toBeUndefined();
  });
});
