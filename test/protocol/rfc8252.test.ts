import * as openidClient from 'openid-client';
import { beforeEach, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  pkcePair,
  refusalOf,
  responseParameters,
  startAuthorizationServer,
} from './harness.ts';

/** An app on the devices of users, with callbacks there and on a site of its own. */
const editor = {
  name: 'editor',
  clientId: 'editor',
  secret: 'secret-that-no-device-knows',
  isPublic: true,
  redirectUris: ['http://127.0.0.1/callback?x=1', 'http://[::1]:7/', 'https://editor.example/cb'],
};
const { challenge: code_challenge, verifier: code_verifier } = pkcePair();
const request = {
  response_type: 'code',
  client_id: 'editor',
  redirect_uri: 'http://127.0.0.1:49152/callback?x=1',
  code_challenge,
  code_challenge_method: 'S256',
};
const { redirect_uri } = request;

let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer({
    services: [editor, { ...editor, name: 'site', clientId: 'site', isPublic: false }],
  });
  return () => hub[Symbol.asyncDispose]();
});

test('§7.3 the port of a loopback redirect URI may be any at the time of the request', async () => {
  const client = await openidClient.discovery(
    new URL(hub.issuer),
    'editor',
    undefined,
    openidClient.None(),
    { algorithm: 'oauth2', execute: [openidClient.allowInsecureRequests] },
  );
  const url = openidClient.buildAuthorizationUrl(client, {
    redirect_uri: 'http://[::1]:49152/',
    code_challenge,
    code_challenge_method: 'S256',
  });
  const back = await hub.decide(url.searchParams, await hub.login('alice'));
  const location = new URL(back.headers.get('location')!);
  expect(location.href).toMatch(/^http:\/\/\[::1\]:49152\/\?code=/);
  const tokens = await openidClient.authorizationCodeGrant(client, location, {
    pkceCodeVerifier: code_verifier,
  });
  await openidClient.tokenRevocation(client, tokens.access_token);
});

test.each(['http://127.0.0.1/callback?x=1', 'http://[::1]:65535/', 'https://editor.example/cb'])(
  '§7.3 %s is registered, too',
  async (uri) => {
    const shown = await hub.authorize({ ...request, redirect_uri: uri }, await hub.login('alice'));
    expect(shown.status).toBe(200);
  },
);

test.each([
  'http://127.0.0.1:1/callback',
  'http://127.0.0.1:1/callback?x=1#',
  'http://127.0.0.1:1@evil.example/callback?x=1',
  'http://127.0.0.1:x/callback?x=1',
  'http://127.0.0.1:123456/callback?x=1',
  'http://127.0.0.1.evil.example/callback?x=1',
  'http://127.0.0.2/callback?x=1',
  'http://2130706433/callback?x=1',
  'http://localhost:1/callback?x=1',
  'https://127.0.0.1:1/callback?x=1',
  'HTTP://127.0.0.1:1/callback?x=1',
  'http://127.0.0.1:1\\@evil.example/callback?x=1',
  'http://[::1]:7//',
  'https://editor.example:444/cb',
])('§8.10 %s is refused on an error page', async (uri) => {
  const answer = await hub.authorize({ ...request, redirect_uri: uri }, await hub.login('alice'));
  expect([answer.status, answer.headers.get('location')]).toEqual([400, null]);
});

test('§7.3 a confidential client has no app on a device: its ports are as registered', async () => {
  const answer = await hub.authorize({ ...request, client_id: 'site' }, await hub.login('alice'));
  expect(answer.status).toBe(400);
});

test('RFC 6749 §3.1.2.3 with several redirect URIs the request must name one', async () => {
  const { redirect_uri: _, ...without } = request;
  expect((await hub.authorize(without, await hub.login('alice'))).status).toBe(400);
});

test('RFC 6749 §4.1.3 the token request names the one of the authorization request', async () => {
  const code = await hub.obtainCode(await hub.login('alice'), request);
  const form = { grant_type: 'authorization_code', client_id: 'editor', code, code_verifier };
  const other = { ...form, redirect_uri: 'http://127.0.0.1:49153/callback?x=1' };
  expect(await refusalOf(await hub.post('token', other))).toEqual([400, 'invalid_grant']);
});

test('§6 a public native app must use PKCE', async () => {
  const { code_challenge: _, code_challenge_method: __, ...without } = request;
  const answer = await hub.authorize(without, await hub.login('alice'));
  expect(responseParameters(answer).get('error')).toBe('invalid_request');
});

test('§8.6 consent is asked each time where any app of the device may be the client', async () => {
  const alice = await hub.login('alice');
  const code = await hub.obtainCode(alice, request);
  const form = { grant_type: 'authorization_code', client_id: 'editor', code };
  const answer = await hub.post('token', { ...form, code_verifier, redirect_uri });
  expect(answer.status).toBe(200);
  expect((await hub.authorize(request, alice)).status).toBe(200);
  const bySite = { ...request, redirect_uri: 'https://editor.example/cb' };
  expect((await hub.authorize(bySite, alice)).status).toBe(302);
});

test('§8.5 a code needs its verifier, and a wrong secret is worse than none', async () => {
  const code = await hub.obtainCode(await hub.login('alice'), request);
  const form = { grant_type: 'authorization_code', client_id: 'editor', code, redirect_uri };
  const guessed = { ...form, client_secret: 'guessed', code_verifier };
  expect(await refusalOf(await hub.post('token', guessed))).toEqual([401, 'invalid_client']);
  expect(await refusalOf(await hub.post('token', form))).toEqual([400, 'invalid_grant']);
});

test('§8.5 a confidential client that only names itself is not let in', async () => {
  const form = { grant_type: 'authorization_code', client_id: 'site', code: 'x' };
  expect(await refusalOf(await hub.post('token', form))).toEqual([401, 'invalid_client']);
});

test('RFC 7662 §2.1 a public client does not get to ask about tokens', async () => {
  const form = { client_id: 'editor', token: 'x' };
  expect(await refusalOf(await hub.post('introspect', form))).toEqual([401, 'invalid_client']);
});
