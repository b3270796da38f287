import { expect, test } from 'vitest';
import { startAuthorizationServer, wiki } from '../../../../test/protocol/harness.ts';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { createClientSecretVerifier } from './client-secret.ts';

test("takes a service's API token and a server's own token, each for its client only", async () => {
  await using hub = await startAuthorizationServer();
  const { user } = await hub.login('alice');
  const { secret } = await hub.createServerOf(user);
  const { secret: named } = await hub.createServerOf(user, 'lab');
  const verify = createClientSecretVerifier(hub);
  const [service, server, lab] = await Promise.all(
    ['service-wiki', 'hub-user-alice', 'hub-user-alice-lab'].map(async (id) => {
      const client = await hub.clients.find(id);
      if (client === undefined) throw new Error(`no client ${id}`);
      return client;
    }),
  );

  expect(await verify(service!, wiki.secret)).toBe(true);
  expect(await verify(server!, secret)).toBe(true);
  expect(await verify(lab!, named)).toBe(true);

  expect(await verify(service!, secret)).toBe(false);
  expect(await verify(server!, wiki.secret)).toBe(false);
  expect(await verify(server!, named)).toBe(false);
  expect(await verify(lab!, secret)).toBe(false);
  expect(await verify(service!, '')).toBe(false);
});

test("does not take another token of a server's user", async () => {
  await using hub = await startAuthorizationServer();
  const { user } = await hub.login('alice');
  await hub.createServerOf(user);
  const client = await hub.clients.find('hub-user-alice');
  const { token } = await hub.accessTokens.create({
    owner: { kind: 'user', userId: user.id },
    scopes: ['inherit'],
    note: '',
  });
  expect(await createClientSecretVerifier(hub)(client!, token)).toBe(false);
});

test('takes the token that a service had at the JupyterHub it was taken over from', async () => {
  await using hub = await startAuthorizationServer();
  const client = await hub.clients.find('service-wiki');
  const verify = createClientSecretVerifier({
    ...hub,
    importedTokens: {
      adopt: async (token) => token === 'old',
      isOfService: async (tokenHash, name) => tokenHash === hashSecret('old') && name === 'wiki',
    },
  });
  expect(await verify(client!, 'old')).toBe(true);
  expect(await verify(client!, 'older')).toBe(false);
});
