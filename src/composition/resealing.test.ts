import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../test/support/databases.ts';
import { createSealedSettings } from '../identity/authentication/sealed-settings.ts';
import { createAcmeStore } from '../platform/acme/acme-store.ts';
import { Secret } from '../platform/config/secret.ts';
import { serviceSchema } from '../platform/config/service-schema.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createInternalAuthority } from '../platform/internal-tls/internal-authority.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import { sealColumnsAgain } from '../platform/store/sealed-columns.ts';
import { sealedColumns } from './resealing.ts';
import { createStores } from './stores.ts';

const log = pino({ level: 'silent' });
const [former, first] = [new Secret('of last year'), new Secret('of this year')];

const sealAgain = (database: HubDatabase) =>
  sealColumnsAgain(database, { columns: sealedColumns, secrets: [first, former] });

/** All that the hub stores sealed, as one with these keys of it reads and writes it. */
function storedWith(database: HubDatabase, secrets: readonly Secret[]) {
  const stores = createStores(database, secrets, log);
  const { settings } = stores;
  const authority = createInternalAuthority({ settings, secrets, now: () => 1e12, log });
  return {
    ...stores,
    acme: createAcmeStore(settings, createSealer(secrets, 'acme')),
    ofPlugin: createSealedSettings('oidc', {
      settings,
      sealer: createSealer(secrets, 'plugin-settings'),
    }),
    internalAuthority: async () => (await authority.issue('hub')).ca,
  };
}

const identity = { authenticator: 'oidc', issuer: 'https://id.example', subject: '7' };
const headers = { request: { set: { authorization: 'Basic hushhush' } } };
const { api_token: _, ...definition } = serviceSchema.parse({
  ...{ name: 'wiki', command: ['wiki'], environment: { PASSWORD: 'hushhush' }, headers },
});

describeEachDatabase('what is stored sealed', (open) => {
  test('is sealed again with the first key, and then needs no other', async () => {
    const database = await open();
    const before = storedWith(database, [former]);
    const { id } = await before.users.create({ name: 'ada' });
    const factor = { totpSecret: 'TOTP', step: 1, recoveryCodeHashes: [], now: new Date() };
    await before.secondFactorStore.add(id, factor);
    const key = { id: 'k', algorithm: 'ES256', privateKey: 'PEM', endsAt: undefined } as const;
    await before.signingKeyStore.add({ ...key, activeFrom: new Date() }, undefined);
    await before.runtimeServiceStore.change(() => ({ put: { definition, tokenHash: undefined } }));
    await before.ofPlugin.set('registration', 'client secret');
    const accountKey = await before.acme.accountKey('of the hub');
    const authority = await before.internalAuthority();
    const { id: identityId } = await before.identities.link({ userId: id, ...identity });
    await before.identities.setAuthState(identityId, { refresh_token: 'hushhush' }, new Date());

    expect(await sealAgain(database)).toBe(8);
    expect(await sealAgain(database)).toBe(0);

    const after = storedWith(database, [first]);
    expect(await after.secondFactorStore.find(id)).toEqual({ totpSecret: 'TOTP' });
    expect(await after.signingKeyStore.list()).toMatchObject([{ id: 'k', privateKey: 'PEM' }]);
    expect((await after.runtimeServiceStore.list())[0]?.definition).toMatchObject({
      headers,
      environment: { PASSWORD: 'hushhush' },
    });
    expect(await after.ofPlugin.find('registration')).toBe('client secret');
    expect((await after.acme.accountKey('of the hub')).equals(accountKey)).toBe(true);
    expect(await after.internalAuthority()).toBe(authority);
    expect((await after.identities.findAuthState(identityId))?.state).toEqual({
      refresh_token: 'hushhush',
    });
  });

  test('that no key opens is left as it is', async () => {
    const database = await open();
    const { settings, ofPlugin } = storedWith(database, [new Secret('lost')]);
    await ofPlugin.set('registration', 'client secret');
    const sealed = await settings.find('authenticator:oidc:registration');
    expect(await sealAgain(database)).toBe(0);
    expect(await settings.find('authenticator:oidc:registration')).toBe(sealed);
  });
});
