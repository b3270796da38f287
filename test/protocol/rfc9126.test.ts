import * as openidClient from 'openid-client';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  pkcePair,
  refusalOf,
  responseParameters,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const notes = {
  ...wiki,
  name: 'notes',
  secret: 'notes-secret-0123456789',
  isPublic: true,
} as const;
const bank = {
  ...wiki,
  name: 'bank',
  secret: 'bank-secret-0123456789',
  requiresPush: true,
} as const;
const asWiki = basic('service-wiki', wiki.secret);

let hub: AuthorizationServerHarness;
let alice: Awaited<ReturnType<AuthorizationServerHarness['login']>>;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services: [wiki, forum, notes, bank] });
  alice = await hub.login('alice');
  return () => hub[Symbol.asyncDispose]();
});

const request = { response_type: 'code', client_id: 'service-wiki', state: 'pushed' };
const push = (more: Record<string, string> = {}, client: Record<string, string> = asWiki) =>
  hub.post('par', { ...request, ...more }, client);
/** What a browser is sent to the authorization endpoint with. */
async function pushed(more: Record<string, string> = {}) {
  const answer = await push(more);
  expect(answer.status).toBe(201);
  const { request_uri } = (await answer.json()) as { request_uri: string };
  return { client_id: 'service-wiki', request_uri };
}

test('openid-client pushes its request and logs a user in', async () => {
  const configuration = await openidClient.discovery(
    new URL(hub.issuer),
    'service-wiki',
    undefined,
    openidClient.ClientSecretPost(wiki.secret),
    { execute: [openidClient.allowInsecureRequests] },
  );
  const { verifier, challenge } = pkcePair();
  const url = await openidClient.buildAuthorizationUrlWithPAR(configuration, {
    redirect_uri: `${hub.origin}/services/wiki/oauth_callback`,
    scope: 'openid',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  expect([...url.searchParams.keys()].sort()).toEqual(['client_id', 'request_uri']);
  const parameters = Object.fromEntries(url.searchParams);
  const { location } = Object.fromEntries((await hub.decide(parameters, alice)).headers);
  const tokens = await openidClient.authorizationCodeGrant(configuration, new URL(location ?? ''), {
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  });
  expect(tokens.claims()?.sub).toBe(alice.user.id);
});

describe('§2.1 and §2.3 a request that is pushed', () => {
  test('"MUST be authenticated in the same way as at the token endpoint"', async () => {
    expect(await refusalOf(await push({}, {}))).toEqual([401, 'invalid_client']);
    const guessed = basic('service-wiki', 'guessed');
    expect(await refusalOf(await push({}, guessed))).toEqual([401, 'invalid_client']);
    const asForum = basic('service-forum', forum.secret);
    expect(await refusalOf(await push({}, asForum))).toEqual([400, 'invalid_request']);
  });

  test.each([
    [{ request_uri: 'urn:ietf:params:oauth:request_uri:x' }, 'invalid_request'],
    [{ redirect_uri: 'https://evil.example/' }, 'invalid_request'],
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ scope: 'admin:users' }, 'invalid_scope'],
    [{ code_challenge: 'short', code_challenge_method: 'S256' }, 'invalid_request'],
    [{ scope: 'openid', prompt: 'none login' }, 'invalid_request'],
  ])('is checked as at the authorization endpoint: %j', async (more, error) => {
    expect(await refusalOf(await push(more))).toEqual([400, error]);
  });

  test('of servers of users, who know their secrets, only so many are kept for one network', async () => {
    const { secret } = await hub.createServerOf(alice.user);
    const asServer = basic('hub-user-alice', secret);
    const answers = [];
    for (let count = 0; count < 6; count += 1)
      answers.push((await push({ client_id: 'hub-user-alice' }, asServer)).status);
    expect(answers).toEqual([201, 201, 201, 201, 201, 429]);
  });

  test('of public clients only so many are kept for one network', async () => {
    const { challenge } = pkcePair();
    const more = {
      client_id: 'service-notes',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
    const answers = [];
    for (let count = 0; count < 6; count += 1) answers.push((await push(more, {})).status);
    expect(answers).toEqual([201, 201, 201, 201, 201, 429]);
  });
});

describe('§2.2 and §4 the request URI', () => {
  test('cannot be guessed, and its lifetime is told', async () => {
    expect(await (await push()).json()).toEqual({
      request_uri: expect.stringMatching(/^urn:ietf:params:oauth:request_uri:[\w-]{43}$/),
      expires_in: 600,
    });
  });

  test('stands for the whole request: what the browser brings beside it does not count', async () => {
    const parameters = await pushed();
    const answer = await hub.decide({ ...parameters, state: 'injected' }, alice);
    expect(responseParameters(answer).get('state')).toBe('pushed');
  });

  test('is good for one answer, and for the pages before it', async () => {
    const parameters = await pushed();
    expect((await hub.authorize(parameters, alice)).status).toBe(200);
    expect((await hub.authorize(parameters, alice)).status).toBe(200);
    expect(responseParameters(await hub.decide(parameters, alice)).has('code')).toBe(true);
    expect((await hub.decide(parameters, alice)).status).toBe(400);
    const denied = await pushed();
    await hub.decide(denied, alice, { decision: 'deny' });
    expect((await hub.authorize(denied, alice)).status).toBe(400);
  });

  test('"MUST be bound to the client that posted the authorization request"', async () => {
    const parameters = await pushed();
    for (const client_id of ['service-forum', '', 'unknown'])
      expect((await hub.authorize({ ...parameters, client_id }, alice)).status).toBe(400);
    const request_uri = `${parameters.request_uri}x`;
    expect((await hub.authorize({ ...parameters, request_uri }, alice)).status).toBe(400);
  });

  test('goes on after a login that it asked for, and asks for no other', async () => {
    const parameters = await pushed({ scope: 'openid', prompt: 'login', login_hint: 'alice' });
    const asked = (await (await hub.authorize(parameters, alice)).json()) as { confirm: string };
    const next = new URL(asked.confirm, hub.origin);
    expect(next.searchParams.get('login_hint')).toBe('alice');
    const shown = await hub.authorize(next.searchParams, alice);
    expect(await shown.json()).toHaveProperty('view');
  });
});

test('§6 a client may have to push every request', async () => {
  const client_id = 'service-bank';
  const bare = await hub.authorize({ ...request, client_id }, alice);
  expect(responseParameters(bare).get('error')).toBe('invalid_request');
  const answer = await push({ client_id }, basic(client_id, bank.secret));
  const { request_uri } = (await answer.json()) as { request_uri: string };
  expect((await hub.authorize({ client_id, request_uri }, alice)).status).toBe(200);
});

test('§5 both metadata documents name the endpoint, and that it need not be used', async () => {
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    const answer = await hub.request(`${hub.issuer}/.well-known/${name}`);
    expect(await answer.json()).toMatchObject({
      pushed_authorization_request_endpoint: hub.endpoint('par'),
      require_pushed_authorization_requests: false,
    });
  }
});
