import { beforeEach, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  errorOf,
  pkcePair,
  responseParameters,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const request = { response_type: 'code', client_id: 'service-wiki', state: 'xyz' };
let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  return () => hub[Symbol.asyncDispose]();
});

test('§2.1 redirection URIs MUST be compared exactly', async () => {
  const alice = await hub.login('alice');
  for (const redirect_uri of [
    '/services/wiki/oauth_callback/more',
    '/services/wiki/oauth_callback?more=1',
    '/services/wiki/oauth_callback%3fmore',
    '/services/wiki/oauth_callback#more',
    `${hub.origin}:80/services/wiki/oauth_callback`,
    `${hub.origin}/../services/wiki/oauth_callback`,
  ]) {
    const response = await hub.authorize({ ...request, redirect_uri }, alice);
    expect([redirect_uri, response.status, response.headers.get('location')]).toEqual([
      redirect_uri,
      400,
      null,
    ]);
  }
});

test('§2.1.1 MUST support PKCE', async () => {
  const { verifier, challenge } = pkcePair();
  const code = await hub.obtainCode(await hub.login('alice'), {
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  expect((await hub.exchange(code, { code_verifier: verifier })).status).toBe(200);
});

test('§2.1.1 MUST enforce the code_verifier when a code_challenge was sent', async () => {
  const code = await hub.obtainCode(await hub.login('alice'), {
    code_challenge: pkcePair().challenge,
    code_challenge_method: 'S256',
  });
  expect(await errorOf(await hub.exchange(code))).toBe('invalid_grant');
});

test('§2.1.1 MUST provide a way to detect the support for PKCE', async () => {
  const response = await hub.request(`${hub.origin}/.well-known/oauth-authorization-server`);
  expect(await response.json()).toMatchObject({ code_challenge_methods_supported: ['S256'] });
});

test('§2.1.2 the implicit grant is not offered', async () => {
  const response = await hub.authorize({ ...request, response_type: 'token' });
  expect(responseParameters(response).get('error')).toBe('unsupported_response_type');
});

test('§2.3 the privileges of a token are the minimum: only what the client asked for', async () => {
  await using generous = await startAuthorizationServer({
    services: [{ ...wiki, allowedScopes: ['servers!user'] }],
  });
  const alice = await generous.login('alice');
  const caller = await generous.tokenVerifier.verify(
    await generous.obtainToken(alice, { scope: 'read:servers!user' }),
  );
  expect([...caller!.scopes]).toContain('read:servers!user=alice');
  expect([...caller!.scopes]).not.toContain('servers!user=alice');
});

test('§2.4 the password grant MUST NOT be used', async () => {
  const form = { grant_type: 'password', username: 'alice', password: 'x' };
  const response = await hub.post('token', form, basic('service-wiki', wiki.secret));
  expect(await errorOf(response)).toBe('unsupported_grant_type');
});

test('§2.6 the authorization endpoint MUST NOT support CORS', async () => {
  const alice = await hub.login('alice');
  const headers = { ...alice.headers, Origin: 'https://evil.example' };
  const response = await hub.request(hub.authorizationUrl(request), { headers });
  expect(response.headers.get('access-control-allow-origin')).toBeNull();
});

test('§4.2.4 answers of the authorization endpoint keep its URL from other sites', async () => {
  const response = await hub.authorize(request, await hub.login('alice'));
  expect(response.headers.get('referrer-policy')).toMatch(/^(no-referrer|same-origin)$/);
});

test('§4.2.4 a code is of no use after its first use', async () => {
  const code = await hub.obtainCode(await hub.login('alice'));
  expect((await hub.exchange(code)).status).toBe(200);
  expect(await errorOf(await hub.exchange(code))).toBe('invalid_grant');
});

test('§4.3.1 a code in the browser history cannot be replayed, even at the same moment', async () => {
  const code = await hub.obtainCode(await hub.login('alice'));
  const answers = await Promise.all(Array.from({ length: 20 }, () => hub.exchange(code)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
});

test('§4.4.2.1 the authorization response names its issuer, against mix-up', async () => {
  const response = await hub.decide(request, await hub.login('alice'));
  expect(responseParameters(response).get('iss')).toBe(hub.issuer);
});

test("§4.5 an injected code of another's authorization does not match the verifier", async () => {
  const [victim, attacker] = [pkcePair(), pkcePair()];
  const stolen = await hub.obtainCode(await hub.login('alice'), {
    code_challenge: victim.challenge,
    code_challenge_method: 'S256',
  });
  const response = await hub.exchange(stolen, { code_verifier: attacker.verifier });
  expect(await errorOf(response)).toBe('invalid_grant');
});

test('§4.7 the consent form is protected against forged requests', async () => {
  const [alice, mallory] = [await hub.login('alice'), await hub.login('mallory')];
  const csrf = `csrf-${mallory.sessionId}`;
  expect((await hub.decide(request, alice, { decision: 'allow', csrf })).status).toBe(403);
});

test('§4.8.2 a code_verifier MUST be refused when there was no code_challenge', async () => {
  const code = await hub.obtainCode(await hub.login('alice'));
  const response = await hub.exchange(code, { code_verifier: pkcePair().verifier });
  expect(await errorOf(response)).toBe('invalid_grant');
});

test('§4.11.2 MUST NOT redirect to an unverified URI, not even with an error', async () => {
  const redirect_uri = 'https://evil.example/';
  for (const parameters of [
    { ...request, redirect_uri, scope: 'invalid' },
    { ...request, redirect_uri, response_type: 'nonsense' },
    { redirect_uri },
  ]) {
    const response = await hub.authorize(parameters, await hub.login('alice'));
    expect([response.status, response.headers.get('location')]).toEqual([400, null]);
  }
});

test('§4.12 MUST NOT redirect with 307 after a form', async () => {
  const alice = await hub.login('alice');
  expect((await hub.decide(request, alice)).status).toBe(302);
  expect((await hub.decide(request, alice, { decision: 'deny' })).status).toBe(302);
});

test('§4.14 no refresh token is issued', async () => {
  const response = await hub.exchange(await hub.obtainCode(await hub.login('alice')));
  expect(await response.json()).not.toHaveProperty('refresh_token');
});

test('§4.15 a client cannot be mistaken for a user', async () => {
  const response = await hub.post(
    'token',
    { grant_type: 'client_credentials', scope: 'read:users' },
    basic('service-wiki', wiki.secret),
  );
  expect(await errorOf(response)).toBe('unauthorized_client');
});

test('§4.16 MUST prevent clickjacking', async () => {
  const response = await hub.authorize(request, await hub.login('alice'));
  expect(response.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
});
