import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Client } from '../../identity/oauth/clients/client.ts';
import { emptyMembership } from '../../identity/rbac/membership.ts';
import { Secret } from '../../platform/config/secret.ts';
import { type ChangeSubject, createChangeListeners } from '../../platform/store/change-subject.ts';
import { createRoute } from '../proxy/route.ts';
import { createAssertionSigner } from './assertion.ts';
import { createExchangeGuardCode } from './direct-hub-api.ts';
import { createGuard } from './guard.ts';
import { createRouteAccess } from './route-access.ts';

const route = createRoute(
  {
    prefix: '/services/app/',
    target: 'http://127.0.0.1:1',
    access: 'gateway',
    owner: { kind: 'service', name: 'app' },
    clientId: 'service-app',
  },
  0,
);

const client: Client = {
  clientId: 'service-app',
  kind: 'service',
  name: 'app',
  origin: 'http://hub.test',
  redirectUris: ['/services/app/oauth_callback'],
  isPublic: false,
  allowedScopes: [],
  accessScope: 'access:services!service=app',
  skipsConsent: true,
  identity: { clientId: 'service-app', service: 'app' },
};

/** A guard in front of tokens that are names of users; it counts how often one is looked up. */
function guardedWorld() {
  const changes = createChangeListeners({ log: pino({ level: 'silent' }) });
  const secrets = [new Secret('0123456789abcdef0123456789abcdef')];
  const lookups: string[] = [];
  const expiries = new Map<string, Date>();
  let beforeLookup = () => Promise.resolve();
  const guard = createGuard({
    secrets,
    publicUrl: new URL('http://hub.test/'),
    origins: { of: () => 'http://hub.test', hasHostCookies: false },
    issuer: 'http://hub.test',
    database: {
      onChange: changes.add,
      now: Date.now,
      changeFeed: { knownAtMs: () => performance.now(), isLost: () => false, lossCount: 0 },
    },
    assertions: createAssertionSigner({ secrets, issuer: 'http://hub.test' }),
    clients: { allowedScopes: () => [] },
    hubApi: {
      authorizer: { groupNamesOf: async () => [] },
      infoOf: async () => ({}),
      exchangeCode: createExchangeGuardCode({
        clients: { find: async () => client },
        exchangeCode: async (_client, { code }) => ({
          issued: { id: `token-of-${code}`, token: code },
          accessToken: { owner: { kind: 'user', userId: code }, scopes: [], note: '' },
          lifetimeSeconds: 3600,
        }),
      }),
      access: createRouteAccess({
        authorizer: { membershipFor: async () => emptyMembership },
        revalidation: { hasCurrentLogin: async () => true },
        activity: { noteUser: () => {} },
        tokens: {
          findBearer: async () => undefined,
          async verify(userName) {
            lookups.push(userName);
            await beforeLookup();
            const expiresAt = expiries.get(userName);
            return {
              owner: { kind: 'user', name: userName },
              scopes: new Set(['access:services!service=app']),
              sessionId: `session-of-${userName}`,
              accessToken: {
                id: `token-of-${userName}`,
                note: '',
                ...(expiresAt !== undefined && { expiresAt }),
              },
            };
          },
        },
      }),
    },
  });
  const headers = { host: 'hub.test', 'sec-fetch-mode': 'navigate', accept: 'text/html' };
  const pairs = (setCookies: readonly string[]) =>
    setCookies.map((line) => line.slice(0, line.indexOf(';'))).join('; ');

  /** Goes through the OAuth flow and returns a request as the browser sends it from then on. */
  async function visitor(userName: string) {
    const first = await guard.decide(route, { method: 'GET', url: route.prefix, headers });
    if (first.kind !== 'redirect') throw new Error(first.kind);
    const state = new URL(first.location, 'http://hub.test').searchParams.get('state') ?? '';
    const callback = await guard.decide(route, {
      method: 'GET',
      url: `${route.prefix}oauth_callback?${new URLSearchParams({ code: userName, state, iss: 'http://hub.test' })}`,
      headers: { ...headers, cookie: pairs(first.setCookies) },
    });
    if (callback.kind !== 'redirect') throw new Error(JSON.stringify(callback));
    const request = {
      method: 'GET',
      url: route.prefix,
      headers: { ...headers, cookie: pairs(callback.setCookies) },
    };
    expect((await guard.decide(route, request)).kind).toBe('authorized');
    return request;
  }

  return {
    guard,
    lookups,
    expiries,
    visitor,
    announce: (subject: ChangeSubject = { kind: 'rights_changed' }) => changes.callAll(subject),
    delayLookups: (wait: () => Promise<void>) => {
      beforeLookup = wait;
    },
  };
}

test('who was admitted is known from then on, without asking again', async () => {
  const { guard, lookups, visitor } = guardedWorld();
  const alice = await visitor('alice');
  lookups.length = 0;
  for (let request = 0; request < 10; request++) {
    expect(guard.known(route, alice)?.userName).toBe('alice');
  }
  expect(lookups).toEqual([]);
});

const ends: [string, ChangeSubject][] = [
  ['the login', { kind: 'session_ended', sessionId: 'session-of-alice' }],
  ['the token', { kind: 'tokens_revoked', tokenIds: ['other', 'token-of-alice'] }],
];
test.each(ends)(
  'the end of %s of one visitor is heeded at once, and the others stay known',
  async (_, end) => {
    const { guard, visitor, announce } = guardedWorld();
    const [alice, bob] = [await visitor('alice'), await visitor('bob')];
    announce(end);
    expect(guard.known(route, alice)).toBeUndefined();
    expect(guard.known(route, bob)?.userName).toBe('bob');
  },
);

test('a change that may concern any user is heeded for all', async () => {
  const { guard, visitor, announce } = guardedWorld();
  const [alice, bob] = [await visitor('alice'), await visitor('bob')];
  announce();
  expect(guard.known(route, alice)).toBeUndefined();
  expect(guard.known(route, bob)).toBeUndefined();
});

test('ten logins, logouts and new users a second cost the others no lookup', async () => {
  const { guard, lookups, visitor, announce } = guardedWorld();
  const bob = await visitor('bob');
  lookups.length = 0;
  for (let second = 0; second < 100; second++) {
    announce({ kind: 'user_added' });
    announce({ kind: 'session_ended', sessionId: `another-${second}` });
    announce({ kind: 'tokens_revoked', tokenIds: [`another-${second}`] });
    expect(guard.known(route, bob)?.userName).toBe('bob');
  }
  expect(lookups).toEqual([]);
});

test.each([...ends, ['any right', undefined] as const])(
  'an answer that was under way at the end of %s is not remembered',
  async (_, end) => {
    const { guard, visitor, announce, delayLookups } = guardedWorld();
    const alice = await visitor('alice');
    announce();
    const { promise, resolve } = Promise.withResolvers<void>();
    delayLookups(() => promise);
    const deciding = guard.decide(route, alice);
    announce(end);
    resolve();
    await deciding;
    expect(guard.known(route, alice)).toBeUndefined();
  },
);

test('a lookup that was under way when a right was taken is not shared with who comes after', async () => {
  const { guard, lookups, visitor, announce, delayLookups } = guardedWorld();
  const alice = await visitor('alice');
  announce();
  const { promise, resolve } = Promise.withResolvers<void>();
  delayLookups(() => promise);
  lookups.length = 0;
  const early = guard.decide(route, alice);
  announce();
  const late = guard.decide(route, alice);
  resolve();
  await Promise.all([early, late]);
  expect(lookups).toEqual(['alice', 'alice']);
});

test('so many ends that not all can be kept make all visitors unknown', async () => {
  const { guard, visitor, announce } = guardedWorld();
  const alice = await visitor('alice');
  announce({ kind: 'session_ended', sessionId: 'session-of-alice' });
  for (let index = 0; index <= 50_000; index++) {
    announce({ kind: 'session_ended', sessionId: String(index) });
  }
  expect(guard.known(route, alice)).toBeUndefined();
});

/** A request of a program that shows a token, which is the name of a user here. */
function program(token: string, headers: Record<string, string> = {}) {
  return {
    method: 'POST',
    url: route.prefix,
    headers: { host: 'hub.test', authorization: `Bearer ${token}`, ...headers },
  };
}

test.each([...ends, ['any right', undefined] as const])(
  'whose token was admitted is known without asking, until the end of %s',
  async (_, end) => {
    const { guard, lookups, announce } = guardedWorld();
    expect((await guard.decide(route, program('alice'))).kind).toBe('authorized');
    lookups.length = 0;
    const known = guard.known(route, program('alice'));
    expect(known).toMatchObject({ userName: 'alice', stripAuthorization: true });
    // No page of another origin makes a browser send it.
    expect(guard.known(route, program('alice', { origin: 'http://evil.test' }))).toBe(known);
    expect(lookups).toEqual([]);
    announce(end);
    expect(guard.known(route, program('alice'))).toBeUndefined();
  },
);

test('a remembered token is known only where it alone decides', async () => {
  const { guard, visitor } = guardedWorld();
  const { cookie } = (await visitor('bob')).headers;
  await guard.decide(route, program('alice'));
  const basic = `Basic ${Buffer.from('any:alice').toString('base64')}`;
  expect(guard.known(route, program('alice', { authorization: basic }))?.userName).toBe('alice');
  // A browser sends such a password by itself.
  const fromBrowser = { authorization: basic, 'sec-fetch-site': 'cross-site' };
  expect(guard.known(route, program('alice', fromBrowser))).toBeUndefined();
  expect(guard.known(route, program('alice', { cookie }))).toBeUndefined();
  expect(guard.known(route, program('mallory'))).toBeUndefined();
  const linked = { ...program('alice'), url: `${route.prefix}?token=bob` };
  expect(guard.known(route, linked)).toBeUndefined();
  for (const forged of ['alice', 'Bearer alice']) {
    const headers = { host: 'hub.test', cookie: forged };
    expect(guard.known(route, { method: 'GET', url: route.prefix, headers })).toBeUndefined();
  }
});

test('no user is known beyond the end of the token, to the millisecond', async () => {
  const { guard, visitor, expiries } = guardedWorld();
  expiries.set('alice', new Date(Date.now() + 200));
  const alice = await visitor('alice');
  const endMs = expiries.get('alice')!.getTime();
  for (;;) {
    const askedAt = Date.now();
    if (guard.known(route, alice) === undefined) break;
    expect(askedAt).toBeLessThan(endMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(Date.now()).toBeGreaterThanOrEqual(endMs);
});
