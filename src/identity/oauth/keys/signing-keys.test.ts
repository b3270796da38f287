import { createLocalJWKSet, jwtVerify } from 'jose';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../../test/support/databases.ts';
import { Secret } from '../../../platform/config/secret.ts';
import { createSealer } from '../../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import { createSigningKeyStore } from './signing-key-store.ts';
import { createSigningKeys } from './signing-keys.ts';

const dayMs = 86_400_000;

function instanceOn(database: HubDatabase, secret = 'a') {
  const instance = { skippedMs: 0, logged: [] as string[] };
  const now = () => database.now() + instance.skippedMs;
  const store = createSigningKeyStore(
    { ...database, now },
    { sealer: createSealer([new Secret(secret.repeat(32))], 'signing-key') },
  );
  const log = pino({}, { write: (line: string) => void instance.logged.push(line) });
  const keys = createSigningKeys({ store, database: { ...database, now }, days: 90, log });
  return Object.assign(instance, keys);
}

type Instance = ReturnType<typeof instanceOn>;

async function idsOf({ keySet }: Instance, algorithm: string): Promise<string[]> {
  const keys = (await keySet()).keys as { kid: string; alg: string }[];
  return keys.filter(({ alg }) => alg === algorithm).map(({ kid }) => kid);
}

async function signerOf({ sign, keySet }: Instance): Promise<string | undefined> {
  const { keys } = await keySet();
  const { protectedHeader } = await jwtVerify(
    await sign({ sub: 'ada' }, 'ES256'),
    createLocalJWKSet({ keys: keys as [] }),
  );
  return protectedHeader.kid;
}

describeEachDatabase('signing keys', (open) => {
  test('are made once by all who need them first, and are no secret when published', async () => {
    const database = await open();
    const instances = ['a', 'a', 'a'].map((secret) => instanceOn(database, secret));
    const sets = await Promise.all(instances.map(({ keySet }) => keySet()));
    const [first] = sets;
    expect(first?.keys.map((key) => (key as { alg: string }).alg).sort()).toEqual([
      'ES256',
      'RS256',
    ]);
    for (const set of sets) expect(set).toEqual(first);
    for (const key of first?.keys ?? []) expect(key).not.toHaveProperty('d');
    const rows = await database.kysely.selectFrom('signing_keys').select('sealed').execute();
    expect(JSON.stringify(rows)).not.toContain('PRIVATE');
  });

  test('sign what the published keys verify, in either algorithm', async () => {
    const keys = instanceOn(await open());
    const set = createLocalJWKSet((await keys.keySet()) as { keys: [] });
    for (const algorithm of ['RS256', 'ES256'] as const) {
      const { payload, protectedHeader } = await jwtVerify(
        await keys.sign({ sub: 'ada' }, algorithm),
        set,
      );
      expect([payload.sub, protectedHeader.alg]).toEqual(['ada', algorithm]);
    }
  });

  test('follow one another: the next is published a day before, the last until its tokens ended', async () => {
    const keys = instanceOn(await open());
    await keys.maintain();
    const [first] = await idsOf(keys, 'ES256');
    keys.skippedMs = 88 * dayMs;
    await keys.maintain();
    expect(await idsOf(keys, 'ES256')).toEqual([first]);
    keys.skippedMs = 89 * dayMs;
    await keys.maintain();
    await keys.maintain();
    const [, next, ...others] = await idsOf(keys, 'ES256');
    expect([next !== undefined, others]).toEqual([true, []]);
    expect(await signerOf(keys)).toBe(first);
    keys.skippedMs = 90 * dayMs + 60_000;
    expect(await signerOf(keys)).toBe(next);
    expect(await idsOf(keys, 'ES256')).toEqual([first, next]);
    keys.skippedMs += 3600_000;
    expect(await idsOf(keys, 'ES256')).toEqual([next]);
  });

  test('are rotated once by hand, and all end at once when they are revoked', async () => {
    const database = await open();
    const keys = instanceOn(database);
    const [first] = await idsOf(keys, 'ES256');
    await keys.rotate();
    await keys.rotate();
    expect(await idsOf(keys, 'ES256')).toHaveLength(2);
    expect(await signerOf(keys)).toBe(first);
    await keys.revoke();
    const left = await idsOf(keys, 'ES256');
    expect(left).toHaveLength(1);
    expect(await signerOf(keys)).toBe(left[0]);
    expect(left).not.toContain(first);
  });

  test.each([0, 1])('of those that sign now and next, number %i ends alone', async (index) => {
    const keys = instanceOn(await open());
    await idsOf(keys, 'ES256');
    await keys.rotate();
    const [now, next] = await idsOf(keys, 'ES256');
    const revoked = [now, next][index] ?? '';
    const others = await idsOf(keys, 'RS256');
    expect(await keys.revoke(revoked)).toBe(1);
    expect(await keys.revoke(revoked)).toBe(0);
    const left = (await keys.list()).filter(({ algorithm }) => algorithm === 'ES256');
    expect(left.map(({ id }) => id)).not.toContain(revoked);
    // The one that goes on has no end, so that the next comes after it.
    expect(left.filter(({ state, endsAt }) => state === 'active' && !endsAt)).toHaveLength(1);
    expect(await idsOf(keys, 'RS256')).toEqual(others);
  });

  test('lost with the cookie secret are replaced, and found again with it', async () => {
    const database = await open();
    const [former] = await idsOf(instanceOn(database), 'RS256');
    const keys = instanceOn(database, 'b');
    expect((await keys.list()).map(({ state }) => state)).toEqual(['lost', 'lost']);
    await keys.reportLost();
    expect(keys.logged.join()).toContain('Hub.cookie_secret');
    const [replaced, ...others] = await idsOf(keys, 'RS256');
    expect(others).toEqual([]);
    expect(replaced).not.toBe(former);
    const withFormer = instanceOn(database);
    expect(await idsOf(withFormer, 'RS256')).toContain(former);
  });
});
