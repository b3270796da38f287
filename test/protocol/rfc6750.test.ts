import { beforeEach, expect, test } from 'vitest';
import { type AuthorizationServerHarness, startAuthorizationServer } from './harness.ts';

let hub: AuthorizationServerHarness;
let token: string;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  token = await hub.obtainToken(await hub.login('alice'));
  return () => hub[Symbol.asyncDispose]();
});

const get = (headers: Record<string, string> = {}, query = '') =>
  hub.request(hub.userResource + query, { headers });

test('§2 more than one method of transmission is refused', async () => {
  const response = await get({ Authorization: `Bearer ${token}` }, `?token=${token}`);
  expect(response.status).toBe(400);
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_request"');
});

test('§2.1 resource servers MUST support the Authorization header', async () => {
  const response = await get({ Authorization: `Bearer ${token}` });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ name: 'alice' });
});

test('§2.1 the scheme is matched without regard to case', async () => {
  expect((await get({ Authorization: `bearer ${token}` })).status).toBe(200);
});

test('§2.3 an answer to a token in the URL SHOULD NOT be stored', async () => {
  const response = await get({}, `?token=${token}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('cache-control')).toContain('no-store');
});

test('§3 a request without credentials MUST be answered with a Bearer challenge', async () => {
  const response = await get();
  expect(response.status).toBe(401);
  expect(response.headers.get('www-authenticate')).toMatch(/^Bearer /);
});

test('§3.1 the challenge SHOULD NOT hold an error when there were no credentials', async () => {
  expect((await get()).headers.get('www-authenticate')).not.toContain('error');
});

test.each(['hub_unknown', 'x'.repeat(8000)])(
  '§3.1 invalid_token for an unknown token',
  async (unknown) => {
    const response = await get({ Authorization: `Bearer ${unknown}` });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
  },
);

test('§3.1 invalid_token for an expired token', async () => {
  hub.skipSeconds(1_209_601);
  const response = await get({ Authorization: `Bearer ${token}` });
  expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
});

test('§3.1 insufficient_scope SHOULD be answered with 403', async () => {
  const response = await hub.post(
    'introspect',
    { token: 'x' },
    { Authorization: `Bearer ${token}` },
  );
  expect(response.status).toBe(403);
  expect(response.headers.get('www-authenticate')).toContain('error="insufficient_scope"');
});

test('§5.3 tokens are limited in lifetime and scope', async () => {
  const caller = await hub.tokenVerifier.verify(token);
  expect(caller!.accessToken!.expiresAt).toBeInstanceOf(Date);
  expect([...caller!.scopes].sort()).toEqual([
    'access:services!service=wiki',
    'read:users:groups!user=alice',
    'read:users:name!user=alice',
  ]);
});
