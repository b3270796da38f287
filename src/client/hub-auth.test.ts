import { describe, expect, test } from 'vitest';
import { startFakeHub } from '../../test/support/fake-hub.ts';
import { HubError } from '../platform/errors.ts';
import type { HubAuthOptions } from './client-options.ts';
import type { UserModel } from './hub-api.ts';
import { HubAuth } from './hub-auth.ts';

const alice = { name: 'alice', scopes: ['access:services!service=x'] };

function createHubAuth(options: HubAuthOptions): HubAuth {
  return new HubAuth({
    environment: {},
    service_name: 'x',
    api_token: 'the-secret-of-x',
    ...options,
  });
}

async function setUp(options: HubAuthOptions = {}) {
  const hub = await startFakeHub();
  hub.users.set('good', alice);
  return {
    hub,
    hubAuth: createHubAuth({ api_url: hub.apiUrl, ...options }),
    [Symbol.asyncDispose]: () => hub[Symbol.asyncDispose](),
  };
}

describe('user_for_token', () => {
  test('answers with the user model of a token, and with null for an unusable one', async () => {
    await using parts = await setUp();
    expect(await parts.hubAuth.user_for_token('good')).toMatchObject(alice);
    expect(await parts.hubAuth.user_for_token('bad')).toBeNull();
  });

  test('asks the hub once within cache_max_age, also about tokens that identify no user', async () => {
    await using parts = await setUp();
    for (const token of ['good', 'good', 'bad', 'bad']) await parts.hubAuth.user_for_token(token);
    expect(parts.hub.lookups).toBe(2);
  });

  test('asks the hub every time when cache_max_age is zero', async () => {
    await using parts = await setUp({ cache_max_age: 0 });
    for (const token of ['good', 'good', 'bad', 'bad']) await parts.hubAuth.user_for_token(token);
    expect(parts.hub.lookups).toBe(4);
  });

  test('asks again when the session id changed, so that a logout is noticed at once', async () => {
    await using parts = await setUp();
    expect(await parts.hubAuth.user_for_token('good', { sessionId: 'one' })).not.toBeNull();
    parts.hub.users.delete('good');
    expect(await parts.hubAuth.user_for_token('good', { sessionId: 'one' })).not.toBeNull();
    expect(await parts.hubAuth.user_for_token('good')).toBeNull();
  });

  test('a session id cannot be chosen so that it meets the entry of another token', async () => {
    await using parts = await setUp();
    parts.hub.users.set('goo', { name: 'mallory', scopes: [] });
    await parts.hubAuth.user_for_token('goo', { sessionId: 'd' });
    expect(await parts.hubAuth.user_for_token('good', { sessionId: '' })).toMatchObject(alice);
  });

  test('shares one lookup among requests that arrive together', async () => {
    await using parts = await setUp();
    const gate = Promise.withResolvers<void>();
    parts.hub.gate = gate.promise;
    const answers = Array.from({ length: 20 }, () => parts.hubAuth.user_for_token('good'));
    gate.resolve();
    for (const user of await Promise.all(answers)) expect(user).toMatchObject(alice);
    expect(parts.hub.lookups).toBe(1);
  });

  test('one request that is abandoned does not end the lookup of the others', async () => {
    await using parts = await setUp();
    const gate = Promise.withResolvers<void>();
    parts.hub.gate = gate.promise;
    const abort = new AbortController();
    const abandoned = parts.hubAuth.user_for_token('good', { signal: abort.signal });
    const other = parts.hubAuth.user_for_token('good');
    abort.abort(new Error('left'));
    await expect(abandoned).rejects.toThrow('left');
    gate.resolve();
    expect(await other).toMatchObject(alice);
  });

  test('a hub that answers 5xx is upstream_failed, and is asked again', async () => {
    await using parts = await setUp();
    parts.hub.failure = 503;
    await expect(parts.hubAuth.user_for_token('good')).rejects.toMatchObject({
      code: 'upstream_failed',
    });
    parts.hub.failure = undefined;
    expect(await parts.hubAuth.user_for_token('good')).toMatchObject(alice);
  });

  test('a hub that answers 404 is an error of the setup', async () => {
    await using parts = await setUp();
    parts.hub.failure = 404;
    await expect(parts.hubAuth.user_for_token('good')).rejects.toMatchObject({ code: 'internal' });
  });

  test('a hub that cannot be reached is unavailable, and the token is in no message', async () => {
    const parts = await setUp();
    await parts.hub[Symbol.asyncDispose]();
    const error = await parts.hubAuth
      .user_for_token('good-secret')
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(HubError);
    expect(error).toMatchObject({ code: 'unavailable' });
    expect(String((error as HubError).cause)).not.toContain('good-secret');
  });

  test('a hub that does not answer in time is unavailable', async () => {
    await using parts = await setUp({ request_timeout: 0.05 });
    const gate = Promise.withResolvers<void>();
    parts.hub.gate = gate.promise;
    await expect(parts.hubAuth.user_for_token('good')).rejects.toMatchObject({
      code: 'unavailable',
    });
    gate.resolve();
  });

  test('an answer that is no user model is upstream_failed', async () => {
    await using parts = await setUp();
    parts.hub.users.set('odd', { name: '', scopes: [] });
    await expect(parts.hubAuth.user_for_token('odd')).rejects.toMatchObject({
      code: 'upstream_failed',
    });
  });

  test.for(['two words', 'line\r\nInjected: yes', 'ünïcode', '', 'x'.repeat(5000)])(
    'what cannot be a token never reaches the hub: %j',
    async (token) => {
      await using parts = await setUp();
      expect(await parts.hubAuth.user_for_token(token)).toBeNull();
      expect(parts.hub.lookups).toBe(0);
    },
  );

  test('a flood of invented tokens does not push out what is known about real ones', async () => {
    let lookups = 0;
    const hubAuth = createHubAuth({
      hub_api: {
        userForToken: async (token): Promise<UserModel | null> => {
          lookups += 1;
          return token === 'good' ? alice : null;
        },
        exchangeCode: async () => ({ outcome: 'refused', description: undefined }),
      },
    });
    await hubAuth.user_for_token('good');
    for (let index = 0; index < 20_000; index += 1) await hubAuth.user_for_token(`bad${index}`);
    const before = lookups;
    await hubAuth.user_for_token('good');
    expect(lookups).toBe(before);
  });
});

describe('authenticate', () => {
  test.for(['token good', 'Token good', 'bearer good', 'BEARER good'])(
    'accepts the header Authorization: %s',
    async (authorization) => {
      await using parts = await setUp();
      const decision = await parts.hubAuth.authenticate({
        url: '/services/x/',
        headers: { authorization },
      });
      expect(decision).toMatchObject({ kind: 'allowed', user: alice, source: 'header' });
    },
  );

  test('accepts the URL parameter token and takes it out of the URL', async () => {
    await using parts = await setUp();
    const decision = await parts.hubAuth.authenticate({
      url: '/services/x/a?b=%20c&token=good&d',
      headers: {},
    });
    expect(decision).toMatchObject({
      kind: 'allowed',
      source: 'url',
      url: '/services/x/a?b=%20c&d',
    });
  });

  test('ignores the URL parameter where that is turned off', async () => {
    await using parts = await setUp({ allow_token_in_url: false });
    const decision = await parts.hubAuth.authenticate({
      url: '/services/x/?token=good',
      headers: {},
    });
    expect(decision).toMatchObject({ kind: 'denied', status: 401 });
  });

  test('RFC 6750 §3 challenges a request without a token, and names an invalid one', async () => {
    await using parts = await setUp();
    const none = await parts.hubAuth.authenticate({ headers: {} });
    const invalid = await parts.hubAuth.authenticate({ headers: { authorization: 'token bad' } });
    expect(none).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': 'Basic realm="hub", Bearer realm="hub"' },
    });
    expect(invalid).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringContaining('invalid_token') as string },
    });
  });

  test('Access control 3: scopes are checked on every access, not only when the token is looked up', async () => {
    await using parts = await setUp();
    const request = { headers: { authorization: 'token good' } };
    expect((await parts.hubAuth.authenticate(request)).kind).toBe('allowed');
    parts.hubAuth.oauth_scopes = ['custom:more:rights'];
    expect(await parts.hubAuth.authenticate(request)).toMatchObject({
      kind: 'denied',
      status: 403,
    });
    expect(parts.hub.lookups).toBe(1);
  });

  test.for([
    [500, 502],
    [503, 502],
    [400, 500],
  ] as const)(
    'a hub that answers %d is %d to the visitor, never a login',
    async ([answered, status]) => {
      await using parts = await setUp();
      parts.hub.failure = answered;
      const decision = await parts.hubAuth.authenticate({
        headers: { authorization: 'token good' },
      });
      expect(decision).toMatchObject({ kind: 'denied', status });
    },
  );

  test('an unreachable hub is 503 to the visitor, with Retry-After', async () => {
    const parts = await setUp();
    await parts.hub[Symbol.asyncDispose]();
    const decision = await parts.hubAuth.authenticate({ headers: { authorization: 'token good' } });
    expect(decision).toMatchObject({
      kind: 'denied',
      status: 503,
      headers: { 'retry-after': '5' },
    });
  });
});
