import * as openidClient from 'openid-client';
import { beforeEach, describe, expect, test } from 'vitest';
import { deleteSession } from '../../src/platform/store/session-grants.ts';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  refusalOf,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const grant_type = 'urn:ietf:params:oauth:grant-type:token-exchange';
const subject_token_type = 'urn:ietf:params:oauth:token-type:access_token';
const agent = {
  ...wiki,
  grants: ['token_exchange', 'client_credentials'],
  allowedScopes: ['inherit', 'read:users!user', 'access:services!service=forum'],
} as const;
const asAgent = basic('service-wiki', wiki.secret);

let hub: AuthorizationServerHarness;
let alice: Awaited<ReturnType<AuthorizationServerHarness['login']>>;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services: [agent, forum] });
  alice = await hub.login('alice');
  return () => hub[Symbol.asyncDispose]();
});

const exchange = (
  subject_token: string,
  more: Record<string, string> = {},
  client: Record<string, string> = asAgent,
) => hub.post('token', { grant_type, subject_token, subject_token_type, ...more }, client);
async function exchanged(subject_token: string, more: Record<string, string> = {}) {
  const answer = await exchange(subject_token, more);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Record<string, string>;
}
async function callerWith(token: string | undefined): Promise<unknown> {
  const answer = await hub.request(hub.userResource, {
    headers: { Authorization: `Bearer ${token}` },
  });
  return answer.status === 200 ? answer.json() : answer.status;
}
const ofForum = [
  'access:services!service=forum',
  'read:users:groups!user=alice',
  'read:users:name!user=alice',
];

test('§2 openid-client narrows a token to one service, for an hour', async () => {
  const subject_token = await hub.obtainToken(alice, { scope: 'inherit' });
  const configuration = await openidClient.discovery(
    new URL(hub.issuer),
    'service-wiki',
    undefined,
    openidClient.ClientSecretPost(wiki.secret),
    { algorithm: 'oauth2', execute: [openidClient.allowInsecureRequests] },
  );
  const tokens = await openidClient.genericGrantRequest(configuration, grant_type, {
    subject_token,
    subject_token_type,
    audience: 'service-forum',
  });
  expect(tokens).toMatchObject({
    issued_token_type: subject_token_type,
    token_type: 'bearer',
    expires_in: 3600,
  });
  expect(tokens).not.toHaveProperty('refresh_token');
  const caller = (await callerWith(tokens.access_token)) as { name: string; scopes: string[] };
  expect([caller.name, caller.scopes.sort()]).toEqual(['alice', ofForum]);
  hub.skipSeconds(3601);
  expect(await callerWith(tokens.access_token)).toBe(401);
});

describe('§2.1 the request', () => {
  test.each([
    { subject_token: '' },
    { subject_token_type: '' },
    { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
    { requested_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    { actor_token: 'x', actor_token_type: subject_token_type },
    { subject_token: 'guessed' },
  ])('"invalid_request" for %j, which is not valid or not supported', async (more) => {
    const token = await hub.obtainToken(alice);
    expect(await refusalOf(await exchange(token, more))).toEqual([400, 'invalid_request']);
  });

  test('only clients that are configured for it, and only their own tokens', async () => {
    const token = await hub.obtainToken(alice);
    expect(await refusalOf(await exchange(token, {}, {}))).toEqual([401, 'invalid_client']);
    const asForum = basic('service-forum', forum.secret);
    expect(await refusalOf(await exchange(token, {}, asForum))).toEqual([
      400,
      'unauthorized_client',
    ]);
    const { token: byHand } = await hub.tokenIssuer.createApiToken({
      owner: { kind: 'user', user: alice.user },
      note: '',
      granter: { owner: { kind: 'user', name: 'alice' }, scopes: new Set() },
      scopes: [],
    });
    expect(await refusalOf(await exchange(byHand))).toEqual([400, 'invalid_request']);
  });
});

describe('§2.2 never more than the token had', () => {
  test.each([
    [{ scope: 'admin:users' }, 'invalid_scope'],
    [{ scope: 'inherit' }, 'invalid_scope'],
    [{ scope: 'no-such-scope' }, 'invalid_scope'],
    [{ scope: 'read:users:activity!user' }, 'invalid_scope'],
    [{ audience: 'service-forum' }, 'invalid_target'],
    [{ audience: 'unknown' }, 'invalid_target'],
    [{ resource: 'https://evil.example/' }, 'invalid_target'],
    [{ audience: 'service-wiki', scope: 'read:users:activity!user' }, 'invalid_scope'],
  ])('%j is refused', async (more, error) => {
    const token = await hub.obtainToken(alice, { scope: 'read:users:name!user' });
    expect(await refusalOf(await exchange(token, more))).toEqual([400, error]);
  });

  test('a part of its scopes, or all of them, and those of a narrower one no more than that', async () => {
    const token = await hub.obtainToken(alice, { scope: 'read:users!user' });
    const part = await exchanged(token, { scope: 'read:users:name!user' });
    expect(part['scope']).toBe('read:users:name!user');
    expect((await exchanged(token))['scope']).toContain('read:users!user');
    const again = await exchange(part['access_token'] ?? '', { scope: 'read:users!user' });
    expect(await refusalOf(again)).toEqual([400, 'invalid_scope']);
  });

  test('a service narrows its own token', async () => {
    const own = await hub.post(
      'token',
      { grant_type: 'client_credentials', scope: '(no_scope)' },
      asAgent,
    );
    const { access_token } = (await own.json()) as { access_token: string };
    const narrowed = await exchanged(access_token);
    expect(await callerWith(narrowed['access_token'])).toMatchObject({ kind: 'service' });
  });
});

test.each<[string, (token: string) => Promise<unknown>]>([
  ['the token is revoked', (token) => hub.post('revoke', { token }, asAgent)],
  [
    'the login ends',
    () =>
      hub.database.transaction(async (transaction) => {
        await deleteSession(transaction, hub.database, alice.sessionId);
      }),
  ],
  ['the user is deleted', () => hub.users.delete(alice.user.id)],
])('it ends, with those made from it, when %s', async (_, end) => {
  const token = await hub.obtainToken(alice);
  const { access_token = '' } = await exchanged(token);
  const { access_token: third } = await exchanged(access_token);
  expect(await callerWith(third)).toMatchObject({ name: 'alice' });
  await end(token);
  hub.database.announceChange({ kind: 'rights_changed' });
  expect([await callerWith(access_token), await callerWith(third)]).toEqual([401, 401]);
});

test('people see and end it with its client, under whose name it stands', async () => {
  const token = await hub.obtainToken(alice);
  const { access_token } = await exchanged(token);
  const listed = await hub.accessTokens.listOfUser(alice.user.id);
  expect(listed.map(({ clientId }) => clientId)).toEqual(['service-wiki', 'service-wiki']);
  await hub.accessTokens.revokeByClientAndUser('service-wiki', alice.user.id);
  expect(await callerWith(access_token)).toBe(401);
});

test('RFC 8414 §2 the metadata names the grant type', async () => {
  const answer = await hub.request(`${hub.issuer}/.well-known/oauth-authorization-server`);
  expect(await answer.json()).toMatchObject({
    grant_types_supported: expect.arrayContaining([grant_type]),
  });
});
