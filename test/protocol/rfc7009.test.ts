import { beforeEach, expect, test } from 'vitest';
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

const isValid = async () => (await hub.tokenVerifier.verify(token)) !== undefined;

test('§2 the endpoint takes POST only', async () => {
  const response = await hub.request(`${hub.endpoint('revoke')}?token=${token}`, {
    headers: asWiki,
  });
  expect(response.status).toBe(405);
  expect(await isValid()).toBe(true);
});

test('§2.1 the client includes its authentication credentials', async () => {
  const response = await hub.post('revoke', { token });
  expect(response.status).toBe(401);
  expect(await isValid()).toBe(true);
});

test('§2.1 the authorization server first validates the client credentials', async () => {
  const response = await hub.post('revoke', { token }, basic('service-wiki', 'wrong'));
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toMatch(/^Basic /);
  expect(await isValid()).toBe(true);
});

test('§2.1 a token issued to another client is refused, and the client informed', async () => {
  const response = await hub.post('revoke', { token }, basic('service-forum', forum.secret));
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: 'unauthorized_client' });
  expect(await isValid()).toBe(true);
});

test('§2.1 a token that no client got is not for clients to revoke', async () => {
  const { user } = await hub.login('alice');
  const made = await hub.accessTokens.create({
    owner: { kind: 'user', userId: user.id },
    scopes: ['inherit'],
    note: '',
  });
  expect((await hub.post('revoke', { token: made.token }, asWiki)).status).toBe(400);
  expect(await hub.tokenVerifier.verify(made.token)).toBeDefined();
});

test('§2.1 the invalidation takes place immediately', async () => {
  expect(await isValid()).toBe(true);
  const response = await hub.post('revoke', { token }, asWiki);
  expect(response.status).toBe(200);
  expect(await isValid()).toBe(false);
});

test.each(['access_token', 'refresh_token', 'something_else'])(
  '§2.1 the token is found whatever the hint says: %s',
  async (token_type_hint) => {
    expect((await hub.post('revoke', { token, token_type_hint }, asWiki)).status).toBe(200);
    expect(await isValid()).toBe(false);
  },
);

test('§2.2 responds with 200 for an invalid token', async () => {
  expect((await hub.post('revoke', { token: 'unknown' }, asWiki)).status).toBe(200);
});

test('§2.2 responds with 200 for a token that was revoked before', async () => {
  await hub.post('revoke', { token }, asWiki);
  const response = await hub.post('revoke', { token }, asWiki);
  expect(response.status).toBe(200);
  expect(await response.json()).toEqual({});
});

test('§2.2.1 errors are those of RFC 6749 §5.2', async () => {
  const response = await hub.post('revoke', {}, asWiki);
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: 'invalid_request' });
});

test('§5 a token in the URL is refused', async () => {
  const response = await hub.request(`${hub.endpoint('revoke')}?token=${token}`, {
    method: 'POST',
    headers: asWiki,
    body: new URLSearchParams({ token }),
  });
  expect(response.status).toBe(400);
});
