import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const asWiki = basic('service-wiki', wiki.secret);
let hub: AuthorizationServerHarness;
let token: string;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  token = await hub.obtainToken(await hub.login('alice'));
  return () => hub[Symbol.asyncDispose]();
});

async function introspect(
  asked: string,
  headers: Record<string, string> = asWiki,
): Promise<unknown> {
  const response = await hub.post('introspect', { token: asked }, headers);
  expect(response.status).toBe(200);
  return await response.json();
}

async function bearer(userName: string, scopes: readonly string[], isAdmin = false) {
  const { user } = await hub.login(userName);
  if (isAdmin) await hub.users.setAdmin(user.id, true);
  const made = await hub.accessTokens.create({
    owner: { kind: 'user', userId: user.id },
    scopes,
    note: '',
  });
  return { Authorization: `Bearer ${made.token}` };
}

const inactive = { active: false };

describe('request', () => {
  test('§2.1 MUST require some form of authorization', async () => {
    const response = await hub.post('introspect', { token });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).not.toBeNull();
  });

  test('§2.1 the endpoint takes POST, and a token in the URL is refused', async () => {
    const url = `${hub.endpoint('introspect')}?token=${token}`;
    expect((await hub.request(url, { headers: asWiki })).status).toBe(405);
    const post = await hub.request(url, {
      method: 'POST',
      headers: asWiki,
      body: new URLSearchParams(),
    });
    expect(post.status).toBe(400);
  });

  test('§2.1 the token parameter is REQUIRED', async () => {
    const response = await hub.post('introspect', {}, asWiki);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: 'invalid_request' });
  });

  test('§2.1 the token is found whatever the hint says', async () => {
    const response = await hub.post(
      'introspect',
      { token, token_type_hint: 'refresh_token' },
      asWiki,
    );
    expect(await response.json()).toMatchObject({ active: true });
  });

  test('§2.1 a bearer token may authorize the call', async () => {
    expect(await introspect(token, await bearer('root', ['read:tokens'], true))).toMatchObject({
      active: true,
    });
  });
});

describe('response', () => {
  test('§2.2 describes an active token', async () => {
    const alice = await hub.users.getByName('alice');
    expect(await introspect(token)).toEqual({
      active: true,
      scope: 'access:services!service=wiki read:users:groups!user=alice read:users:name!user=alice',
      client_id: 'service-wiki',
      username: 'alice',
      token_type: 'Bearer',
      exp: expect.closeTo(Date.now() / 1000 + 1_209_600, -2),
      sub: alice.id,
      iss: hub.issuer,
      aud: [`${hub.origin}/services/wiki/`],
    });
  });

  test('§2.2 the scope is what the token is worth now', async () => {
    await hub.roles.apply({
      save: [
        {
          ...(await hub.roles.getByName('user')),
          scopes: ['read:users:name!user'],
        },
      ],
    });
    expect(await introspect(token)).toMatchObject({ scope: 'read:users:name!user=alice' });
  });

  test('§2.2 an unknown token is inactive and nothing else is said', async () => {
    expect(await introspect('hub_unknown')).toEqual(inactive);
  });

  test('§2.2 an expired token is inactive', async () => {
    hub.skipSeconds(1_209_601);
    expect(await introspect(token)).toEqual(inactive);
  });

  test('§2.2 a revoked token is inactive', async () => {
    await hub.post('revoke', { token }, asWiki);
    expect(await introspect(token)).toEqual(inactive);
  });

  test('§2.2 a token that the caller may not know about is inactive', async () => {
    expect(await introspect(token, basic('service-forum', forum.secret))).toEqual(inactive);
    expect(await introspect(token, await bearer('bob', ['read:tokens!user']))).toEqual(inactive);
    expect(await introspect(token, await bearer('alice', ['read:tokens!user']))).toMatchObject({
      active: true,
    });
  });

  test('§2.2 a service learns about tokens that give access to it', async () => {
    const { Authorization } = await bearer('bob', ['inherit']);
    expect(await introspect(Authorization.replace('Bearer ', ''))).toMatchObject({
      username: 'bob',
    });
  });

  test("§2.2 a service's token has no username", async () => {
    const answer = await introspect(forum.secret, await bearer('root', ['inherit'], true));
    expect(answer).toEqual({
      active: true,
      token_type: 'Bearer',
      sub: 'service:forum',
      iss: hub.issuer,
    });
    expect(await introspect(forum.secret)).toEqual(inactive);
  });

  test('§2.2 the answer must not be stored', async () => {
    const response = await hub.post('introspect', { token }, asWiki);
    expect(response.headers.get('cache-control')).toBe('no-store');
  });
});

describe('errors', () => {
  test('§2.3 failed client authentication is 401 as in RFC 6749 §5.2', async () => {
    const response = await hub.post('introspect', { token }, basic('service-wiki', 'wrong'));
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: 'invalid_client' });
  });

  test('§2.3 an invalid bearer token of the caller is 401 as in RFC 6750 §3', async () => {
    const response = await hub.post(
      'introspect',
      { token },
      { Authorization: 'Bearer hub_nobody' },
    );
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
  });

  test('§2.3 a bearer token that does not allow the call is refused as in RFC 6750 §3.1', async () => {
    const response = await hub.post(
      'introspect',
      { token },
      await bearer('bob', ['read:users!user']),
    );
    expect(response.status).toBe(403);
  });

  test('§4 the token asked about never authorizes the call', async () => {
    expect((await hub.post('introspect', { token: wiki.secret })).status).toBe(401);
  });
});
