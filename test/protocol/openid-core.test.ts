import { createHash } from 'node:crypto';
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  responseParameters,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

/** OpenID Connect Core 1.0, incorporating errata set 2. */
let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer({
    services: [wiki, { ...forum, idTokenAlgorithm: 'ES256' }],
  });
  return () => hub[Symbol.asyncDispose]();
});

interface TokenAnswer {
  readonly access_token: string;
  readonly token_type: string;
  readonly scope: string;
  readonly id_token?: string;
}

const verified = async (idToken: string, audience: string) =>
  jwtVerify(idToken, createRemoteJWKSet(new URL(hub.endpoint('jwks'))), {
    issuer: hub.issuer,
    audience,
  });

/** What the token endpoint answers for ada, of whom the hub knows name, address and picture. */
async function logIn(scope: string, more: Record<string, string> = {}) {
  const browser = await hub.login('ada');
  await hub.userInfo.change(browser.user, {
    displayName: 'Ada Lovelace',
    email: 'ada@example.org',
    isEmailVerified: true,
    pictureUrl: 'https://example.org/ada.png',
    authenticator: undefined,
  });
  const code = await hub.obtainCode(browser, { scope, ...more });
  const answer = await hub.exchange(code);
  return { browser, code, answer, tokens: (await answer.json()) as TokenAnswer };
}

async function claimsOf({ id_token = '' }: TokenAnswer): Promise<JWTPayload> {
  return (await verified(id_token, 'service-wiki')).payload;
}

const askUserInfo = (token: string) =>
  hub.request(hub.endpoint('userinfo'), { headers: { authorization: `Bearer ${token}` } });

describe('the ID token', () => {
  test('§2 has iss, sub, aud, exp and iat, and sub is the id of the user, of any name', async () => {
    const { browser, tokens } = await logIn('openid profile');
    const claims = await claimsOf(tokens);
    expect(claims).toMatchObject({
      iss: hub.issuer,
      sub: browser.user.id,
      aud: 'service-wiki',
      azp: 'service-wiki',
    });
    expect(claims.exp! - claims.iat!).toBe(3600);
    expect(String(claims.sub).length).toBeLessThanOrEqual(255);
    await hub.users.rename(browser.user.id, 'countess');
    const named = { sub: browser.user.id, preferred_username: 'countess' };
    const again = await hub.exchange(await hub.obtainCode(browser, { scope: 'openid profile' }));
    expect(await claimsOf((await again.json()) as TokenAnswer)).toMatchObject(named);
    const disclosed = await (await askUserInfo(tokens.access_token)).json();
    expect(disclosed).toMatchObject(named);
  });

  test('§2 repeats the nonce unmodified, has none without, and says when the user logged in', async () => {
    const { tokens } = await logIn('openid', { nonce: 'n-0S6 "WzA"/2Mj' });
    const claims = await claimsOf(tokens);
    expect(claims['nonce']).toBe('n-0S6 "WzA"/2Mj');
    expect(Math.abs(Number(claims['auth_time']) - claims.iat!)).toBeLessThan(60);
    expect(await claimsOf((await logIn('openid')).tokens)).not.toHaveProperty('nonce');
  });

  test('§3.1.3.6 at_hash is the left half of the hash of the access token', async () => {
    const { tokens } = await logIn('openid');
    const hash = createHash('sha256').update(tokens.access_token, 'ascii').digest();
    expect((await claimsOf(tokens))['at_hash']).toBe(hash.subarray(0, 16).toString('base64url'));
  });

  test('§15.1 is signed with RS256, or with what the client is registered for', async () => {
    const { browser, tokens } = await logIn('openid');
    const { protectedHeader } = await verified(tokens.id_token ?? '', 'service-wiki');
    expect(protectedHeader.alg).toBe('RS256');
    const parameters = { client_id: 'service-forum', scope: 'openid' };
    const answer = await hub.post(
      'token',
      { grant_type: 'authorization_code', code: await hub.obtainCode(browser, parameters) },
      basic('service-forum', forum.secret),
    );
    const { id_token = '' } = (await answer.json()) as TokenAnswer;
    expect((await verified(id_token, 'service-forum')).protectedHeader.alg).toBe('ES256');
  });

  test('names the login to each client by another sid, which is not the id of the session', async () => {
    const { browser, tokens } = await logIn('openid');
    const { sid } = await claimsOf(tokens);
    expect(sid).toMatch(/^[\w-]{43}$/);
    expect(sid).not.toContain(browser.sessionId);
    const again = await hub.exchange(await hub.obtainCode(browser, { scope: 'openid' }));
    expect((await claimsOf((await again.json()) as TokenAnswer))['sid']).toBe(sid);
    expect((await claimsOf((await logIn('openid')).tokens))['sid']).not.toBe(sid);
  });

  test('says how the user logged in where that is known', async () => {
    const { browser, tokens } = await logIn('openid');
    expect(await claimsOf(tokens)).not.toHaveProperty('amr');
    await hub.database.kysely
      .updateTable('login_sessions')
      .set({ amr: '["pwd","mfa"]', acr: 'https://refeds.org/profile/mfa' })
      .where('session_id', '=', browser.sessionId)
      .execute();
    const answer = await hub.exchange(await hub.obtainCode(browser, { scope: 'openid' }));
    expect(await claimsOf((await answer.json()) as TokenAnswer)).toMatchObject({
      amr: ['pwd', 'mfa'],
      acr: 'https://refeds.org/profile/mfa',
    });
  });
});

describe('the authorization code flow', () => {
  test('§3.1.2.1 without openid it is plain OAuth, and a scope that is unknown is refused', async () => {
    const { tokens } = await logIn('read:users:name!user');
    expect(tokens).not.toHaveProperty('id_token');
    expect(tokens.scope).toBe('read:users:name!user');
    const browser = await hub.login('ada');
    const refused = await hub.authorize(
      { response_type: 'code', client_id: 'service-wiki', scope: 'profile email' },
      browser,
    );
    expect(responseParameters(refused).get('error')).toBe('invalid_scope');
  });

  test('§3.1.2.1 scopes that are not understood SHOULD be ignored, those that are not allowed are not', async () => {
    const { tokens } = await logIn('openid phone unheard-of');
    expect(tokens.scope).toBe('openid');
    const refused = await hub.authorize(
      { response_type: 'code', client_id: 'service-wiki', scope: 'openid admin:users' },
      await hub.login('ada'),
    );
    expect(responseParameters(refused).get('error')).toBe('invalid_scope');
  });

  test('§3.1.3.3 the answer is not cached, has a Bearer token and the scope as it was asked for', async () => {
    const { answer, tokens } = await logIn('openid email groups');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(tokens).toMatchObject({ token_type: 'Bearer', scope: 'openid email groups' });
  });

  test('§3.1.3.2 a code gives one ID token: used again it gives none, and ends what it gave', async () => {
    const { code, tokens } = await logIn('openid');
    const again = await hub.exchange(code);
    expect([again.status, await again.json()]).toEqual([
      400,
      expect.objectContaining({ error: 'invalid_grant' }),
    ]);
    expect((await askUserInfo(tokens.access_token)).status).toBe(401);
  });
});

describe('the claims', () => {
  const all = {
    name: 'Ada Lovelace',
    preferred_username: 'ada',
    picture: 'https://example.org/ada.png',
    email: 'ada@example.org',
    email_verified: true,
    groups: ['maths'],
  };

  test.each([
    ['openid', []],
    ['openid profile', ['name', 'picture', 'preferred_username']],
    ['openid email', ['email', 'email_verified']],
    ['openid groups', ['groups']],
    ['openid profile email groups', Object.keys(all)],
  ])('§5.4 of %s are disclosed by both the ID token and UserInfo', async (scope, names) => {
    await hub.users.ensure('ada');
    await hub.groups.createAll({ names: ['maths'], memberNames: ['ada'], origin: 'api' });
    const { browser, tokens } = await logIn(scope);
    const info = (await (await askUserInfo(tokens.access_token)).json()) as JWTPayload;
    const disclosed = Object.fromEntries(
      Object.entries(all).filter(([name]) => names.includes(name)),
    );
    expect(info).toEqual({ sub: browser.user.id, ...disclosed });
    const claims = await claimsOf(tokens);
    expect(Object.keys(claims).filter((name) => name in all)).toEqual(Object.keys(disclosed));
    expect(claims).toMatchObject(disclosed);
  });

  test('§5.1 what is not known is left out and not null, nor is it what the user may not tell', async () => {
    const browser = await hub.login('bob');
    const code = await hub.obtainCode(browser, { scope: 'openid profile email' });
    const tokens = (await (await hub.exchange(code)).json()) as TokenAnswer;
    expect(await (await askUserInfo(tokens.access_token)).json()).toEqual({
      sub: browser.user.id,
      preferred_username: 'bob',
    });
    const { scopes, ...role } = (await hub.roles.findByName('user'))!;
    const others = [
      'access:services!service=wiki',
      'read:users:name!user',
      'read:users:groups!user',
    ];
    await hub.roles.apply({ save: [{ ...role, scopes: others }] });
    expect(scopes).toContain('self');
    expect((await logIn('openid profile email')).tokens.scope).toBe('openid');
  });

  test('a consent to some claims is none to others', async () => {
    const { browser } = await logIn('openid profile');
    const ask = (scope: string) =>
      hub.authorize({ response_type: 'code', client_id: 'service-wiki', scope }, browser);
    expect((await ask('openid profile')).status).toBe(302);
    expect((await ask('openid email')).status).toBe(200);
  });
});

describe('UserInfo', () => {
  test('§5.3.1 takes the token by GET and POST, in the header or in a form', async () => {
    const { browser, tokens } = await logIn('openid');
    const endpoint = hub.endpoint('userinfo');
    const headers = { authorization: `Bearer ${tokens.access_token}` };
    const body = new URLSearchParams({ access_token: tokens.access_token });
    for (const init of [{ headers }, { method: 'POST', headers }, { method: 'POST', body }]) {
      const answer = await hub.request(endpoint, init);
      expect(answer.headers.get('content-type')).toContain('application/json');
      expect(await answer.json()).toEqual({ sub: browser.user.id });
    }
    const inUrl = await hub.request(`${endpoint}?access_token=${tokens.access_token}`);
    expect(inUrl.status).toBe(400);
  });

  test('§5.3.3 refuses as RFC 6750 says', async () => {
    const { tokens } = await logIn('read:users:name!user');
    for (const [token, status, error] of [
      [tokens.access_token, 403, 'insufficient_scope'],
      ['unknown', 401, 'invalid_token'],
      [wiki.secret, 401, 'invalid_token'],
    ] as const) {
      const answer = await askUserInfo(token);
      expect(answer.status).toBe(status);
      expect(answer.headers.get('www-authenticate')).toContain(`error="${error}"`);
    }
  });

  test('ends with the login', async () => {
    const { browser, tokens } = await logIn('openid');
    await hub.database.kysely
      .deleteFrom('access_tokens')
      .where('session_id', '=', browser.sessionId)
      .execute();
    expect((await askUserInfo(tokens.access_token)).status).toBe(401);
  });
});
