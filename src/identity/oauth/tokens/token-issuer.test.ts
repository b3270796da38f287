import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  startAuthorizationServer,
} from '../../../../test/protocol/harness.ts';
import type { User } from '../../users/user-store.ts';
import { createTokenIssuer } from './token-issuer.ts';

let hub: AuthorizationServerHarness;
let alice: User;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  ({ user: alice } = await hub.login('alice'));
  return () => hub[Symbol.asyncDispose]();
});

async function granter(name: string) {
  const owner = { kind: 'user', name } as const;
  return { owner, scopes: await hub.authorizer.scopesOfOwner(owner) };
}

async function request(more: object = {}) {
  return {
    owner: { kind: 'user', user: alice } as const,
    note: 'n',
    granter: await granter('alice'),
    ...more,
  };
}

describe('a token made by hand', () => {
  test('allows everything its owner may do unless scopes are given', async () => {
    const { token } = await hub.tokenIssuer.createApiToken(await request());
    const caller = await hub.tokenVerifier.verify(token);
    expect(caller!.scopes).toEqual(
      await hub.authorizer.scopesOfOwner({ kind: 'user', name: 'alice' }),
    );
    expect(caller!.accessToken!.expiresAt).toBeUndefined();
  });

  test('is narrowed to the scopes given', async () => {
    const scopes = ['read:users:name!user'];
    const { token } = await hub.tokenIssuer.createApiToken(await request({ scopes }));
    expect((await hub.tokenVerifier.verify(token))!.scopes).toEqual(
      new Set(['read:users:name!user=alice']),
    );
  });

  test('cannot exceed its granter', async () => {
    const weak = { owner: { kind: 'user', name: 'alice' }, scopes: new Set(['tokens!user=alice']) };
    await expect(
      hub.tokenIssuer.createApiToken(await request({ granter: weak })),
    ).rejects.toMatchObject({
      code: 'forbidden',
    });
  });

  test('cannot exceed its owner, no matter who grants it', async () => {
    const { user: root } = await hub.login('root');
    await hub.users.setAdmin(root.id, true);
    const created = hub.tokenIssuer.createApiToken(
      await request({ scopes: ['admin:users'], granter: await granter('root') }),
    );
    await expect(created).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('beyond its owner is a mistake of the owner, and no answer to users who may do less', async () => {
    await hub.login('bob');
    const ask = async (granterName: string) =>
      hub.tokenIssuer.createApiToken(
        await request({ scopes: ['admin:users'], granter: await granter(granterName) }),
      );
    await expect(ask('alice')).rejects.toMatchObject({ code: 'bad_request' });
    await expect(ask('bob')).rejects.toMatchObject({ code: 'forbidden' });
  });

  test.each(['no-such-scope', 'read:users!planet=mars'])(
    'cannot have the scope %s',
    async (scope) => {
      await expect(
        hub.tokenIssuer.createApiToken(await request({ scopes: [scope] })),
      ).rejects.toMatchObject({
        code: 'bad_request',
      });
    },
  );

  test('expires when asked to', async () => {
    const { token } = await hub.tokenIssuer.createApiToken(await request({ expiresInSeconds: 60 }));
    expect(await hub.tokenVerifier.verify(token)).toBeDefined();
    hub.skipSeconds(61);
    expect(await hub.tokenVerifier.verify(token)).toBeUndefined();
  });

  test.each([0, -1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER])(
    'cannot last %s seconds',
    async (expiresInSeconds) => {
      await expect(
        hub.tokenIssuer.createApiToken(await request({ expiresInSeconds })),
      ).rejects.toMatchObject({
        code: 'bad_request',
      });
    },
  );

  test('lasts no longer than the operator allows', async () => {
    const issuer = createTokenIssuer({ ...hub, settings: { token_expires_in_max_seconds: 100 } });
    await expect(
      issuer.createApiToken(await request({ expiresInSeconds: 101 })),
    ).rejects.toMatchObject({
      code: 'bad_request',
    });
    const { id } = await issuer.createApiToken(await request());
    const { createdAt, expiresAt } = (await hub.accessTokens.findById(id))!;
    expect(expiresAt!.getTime() - createdAt.getTime()).toBeLessThanOrEqual(100_000);
  });

  test('may belong to a service', async () => {
    const { token } = await hub.tokenIssuer.createApiToken({
      owner: { kind: 'service', name: 'wiki' },
      note: '',
      granter: await granter('alice'),
    });
    expect((await hub.tokenVerifier.verify(token))!.owner).toEqual({
      kind: 'service',
      name: 'wiki',
    });
  });
});

test("replaces a server's token when the server starts again", async () => {
  const { secret, id } = await hub.createServerOf(alice);
  expect(await hub.tokenVerifier.verify(secret)).toBeDefined();
  const { token } = await hub.tokenIssuer.createServerToken({
    user: alice,
    server: { id, name: '' },
    scopes: ['users:activity!user'],
  });
  expect(await hub.tokenVerifier.verify(secret)).toBeUndefined();
  expect((await hub.tokenVerifier.verify(token))!.accessToken!.note).toBe(
    'Server at hub-user-alice',
  );
});
