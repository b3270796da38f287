import { beforeEach, describe, expect, test } from 'vitest';
import { hashSecret } from '../../src/platform/crypto/hash.ts';
import {
  type AuthorizationServerHarness,
  basic,
  errorOf,
  forum,
  refusalOf,
  responseParameters,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const mail = {
  ...forum,
  name: 'mail',
  grants: ['refresh', 'client_credentials', 'device'],
  allowedScopes: ['access:services!service=wiki', 'access:servers!user', 'read:users:shares!user'],
} as const;
const asMail = basic('service-mail', mail.secret);
const identity = ['read:users:name!user', 'read:users:groups!user'];

let hub: AuthorizationServerHarness;
let alice: Awaited<ReturnType<AuthorizationServerHarness['login']>>;
let at: (path: string) => string;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services: [mail, wiki] });
  alice = await hub.login('alice');
  await hub.createServerOf(alice.user, 'lab');
  at = (path) => `${hub.origin}/${path}`;
  return () => hub[Symbol.asyncDispose]();
});

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly scope: string;
}

function request(more: Record<string, string> | [string, string][]): URLSearchParams {
  const parameters = new URLSearchParams({ response_type: 'code', client_id: 'service-mail' });
  for (const [name, value] of new URLSearchParams(more)) parameters.append(name, value);
  return parameters;
}

async function codeFor(more: Record<string, string> | [string, string][]): Promise<string> {
  const answer = await hub.decide(request(more), alice);
  return responseParameters(answer).get('code') ?? '';
}

const ask = (form: Record<string, string> | [string, string][]) => hub.post('token', form, asMail);
const tokensFor = async (code: string, more: Record<string, string> = {}) =>
  (await (await ask({ grant_type: 'authorization_code', code, ...more })).json()) as Tokens;
/** What a token is good for, which its answer tells only as far as it was asked for. */
const scopesOf = async ({ access_token }: Tokens) =>
  (await hub.accessTokens.findByHash(hashSecret(access_token)))?.scopes.toSorted();

describe.each([
  ['a service', 'services/wiki/mcp', 'access:services!service=wiki'],
  ["a user's server", 'user/alice/api', 'access:servers!server=alice/'],
  [
    'a server with a name, though it has no route',
    'user/alice/lab/x',
    'access:servers!server=alice/lab',
  ],
])('§2.1 a token for %s', (_what, path, access) => {
  test('gives access there and says who the user is, and nothing else that was asked for', async () => {
    const scope = 'read:users:shares!user access:services!service=mail';
    const tokens = await tokensFor(await codeFor({ resource: at(path), scope }));
    expect(await scopesOf(tokens)).toEqual([access, ...identity].toSorted());
    const answer = await hub.request(hub.userResource, {
      headers: { Authorization: `Bearer ${tokens.access_token}` },
    });
    expect(await answer.json()).toMatchObject({ name: 'alice' });
  });

  test('§2.2 stays so when it is refreshed, for another resource no more than before', async () => {
    const { refresh_token } = await tokensFor(await codeFor({ resource: at(path) }));
    const refresh = { grant_type: 'refresh_token', refresh_token };
    expect(await refusalOf(await ask({ ...refresh, resource: at('services/mail/') }))).toEqual([
      400,
      'invalid_target',
    ]);
    const refreshed = (await (await ask({ ...refresh, resource: at(path) })).json()) as Tokens;
    expect(await scopesOf(refreshed)).toEqual([access, ...identity].toSorted());
  });
});

test('§2.2 a code for more is exchanged for a token of one resource, and its refresh token for others', async () => {
  const scope = 'access:services!service=wiki access:services!service=mail openid profile';
  const tokens = await tokensFor(await codeFor({ scope }), { resource: at('services/wiki/') });
  const { access_token, refresh_token } = tokens;
  const verified = await hub.tokenVerifier.verify(access_token);
  expect([...(verified?.scopes ?? [])]).not.toContain('access:services!service=mail');
  const again = await ask({
    grant_type: 'refresh_token',
    refresh_token,
    resource: at('services/mail/'),
  });
  const other = (await again.json()) as Tokens;
  const scopes = [...((await hub.tokenVerifier.verify(other.access_token))?.scopes ?? [])];
  expect(scopes).toContain('access:services!service=mail');
  expect(scopes).not.toContain('access:services!service=wiki');
});

test('§2.2 a code is not exchanged for a token of what was not granted', async () => {
  const code = await codeFor({ resource: at('services/wiki/') });
  const form = { grant_type: 'authorization_code', code, resource: at('user/alice/') };
  expect(await errorOf(await ask(form))).toBe('invalid_target');
});

test('§2 a service gets a token of its own for what its roles allow alone', async () => {
  const form = { grant_type: 'client_credentials', resource: at('services/wiki/') };
  expect(await errorOf(await ask(form))).toBe('invalid_target');
  await hub.roles.apply({
    save: [{ name: 'mailers', description: '', scopes: ['access:services'], origin: 'api' }],
    assign: [{ roleName: 'mailers', subjectKind: 'service', subjectName: 'mail', origin: 'api' }],
  });
  hub.database.announceChange({ kind: 'rights_changed' });
  const answer = (await (await ask(form)).json()) as Tokens;
  expect(answer.scope).toBe('access:services!service=wiki');
});

test.each([
  ['a relative reference', 'services/wiki/'],
  ['one with a fragment', 'http://hub.test/services/wiki/#part'],
  ['another origin', 'http://elsewhere.test/services/wiki/'],
  ['nothing', ''],
])('§2 %s is refused as a resource', async (_what, resource) => {
  const answer = await hub.authorize(request({ resource }), alice);
  expect(responseParameters(answer).get('error')).toBe('invalid_target');
});

test('§2 an address of the hub that no service or server has is refused, and what the client may not ask for', async () => {
  for (const path of ['services/wiki/#', 'services/none/', 'hub/api/', 'user/', '', 'user/bob/']) {
    const answer = await hub.authorize(request({ resource: at(path) }), alice);
    expect(responseParameters(answer).get('error'), path).toBe('invalid_target');
  }
});

test('§2 a device names a resource, too, and its token is for that alone', async () => {
  const begin = async (resource: string) =>
    hub.post('device_authorization', { resource: at(resource) }, asMail);
  expect(await refusalOf(await begin('services/nothing/'))).toEqual([400, 'invalid_target']);
  const { device_code, user_code } = (await (await begin('services/wiki/mcp')).json()) as Record<
    string,
    string
  >;
  await hub.deviceVerification.decide(user_code ?? '', alice, []);
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  const tokens = (await (
    await ask({ grant_type, device_code: device_code ?? '' })
  ).json()) as Tokens;
  expect((await scopesOf(tokens))?.filter((scope) => scope.startsWith('access:'))).toEqual([
    'access:services!service=wiki',
  ]);
  const answer = await hub.post('introspect', { token: tokens.access_token }, asMail);
  expect(await answer.json()).toMatchObject({ active: true, aud: [at('services/wiki/')] });
});

test('§2 several resources are one when they are of one server, and refused when they are not', async () => {
  const both: [string, string][] = [
    ['resource', at('user/alice/mcp')],
    ['resource', at('user/alice/')],
  ];
  expect(await codeFor(both)).not.toBe('');
  both.push(['resource', at('services/wiki/')]);
  const answer = await hub.authorize(request(both), alice);
  expect(responseParameters(answer).get('error')).toBe('invalid_target');
});
