import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { declarations } from '../../src/entrances/api/openapi.ts';
import { allOperations } from '../../src/operations/operations.ts';
import type { BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins, withStolenCookies } from '../support/login-age.ts';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

// Who has stolen a browser's cookies is an administrator until the login ends: what they make then must
// not go on for longer.
let hub: TestHub;
let victim: FakeBrowser;
let thief: FakeBrowser;

beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob']);
  await hub.api('/groups/crew', 'admin-service-token', { method: 'POST', body: '{}' });
  await hub.api('/roles/crew-role', 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ scopes: ['read:hub'] }),
  });
  await hub.api('/roles/crew-role/assignments', 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ users: ['ada'] }),
  });
  await hub.api('/groups/crew/users', 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ users: ['bob'] }),
  });
});
afterAll(() => hub[Symbol.asyncDispose]());
beforeEach(async () => {
  victim = await hub.logIn('ada', testPassword);
  await ageLogins(hub);
  thief = withStolenCookies(victim);
});

async function csrfOf(browser: FakeBrowser): Promise<string> {
  const { body } = await browser.request(`${hub.url}hub/account`);
  return /name="_csrf" value="([^"]+)"/.exec(body)?.[1] ?? '';
}

async function post(
  browser: FakeBrowser,
  path: string,
  fields: Readonly<Record<string, string>> = {},
): Promise<BrowserAnswer> {
  return browser.request(`${hub.url}hub/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ _csrf: await csrfOf(browser), ...fields }).toString(),
  });
}

async function callApi(browser: FakeBrowser, method: string, path: string, body?: unknown) {
  const text = body === undefined ? '' : JSON.stringify(body);
  return browser.request(`${hub.url}hub/api${path}`, {
    method,
    headers: {
      'x-csrf-token': await csrfOf(browser),
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
    },
    body: text,
  });
}

/** Everything that a thief could want to leave behind. */
async function stateOfHub(): Promise<unknown> {
  const read = async (path: string) => {
    const answer = (await (await hub.api(path, 'admin-service-token')).json()) as object;
    return JSON.stringify(answer).replaceAll(/"(last_activity|created)":("[^"]*"|null)/g, '');
  };
  const paths = [
    '/users',
    '/groups',
    '/roles',
    '/roles/crew-role',
    '/users/ada/tokens',
    '/shares/ada',
    '/share-codes/ada',
  ];
  return await Promise.all(paths.map(read));
}

// Those that are bound to operations are asked in entrances.test.ts.
const forms: readonly [path: string, fields?: Readonly<Record<string, string>>][] = [
  ['token', { note: 'everlasting', expires_in: '' }],
  ['account/identities/link', { authenticator: 'github' }],
  ['account/identities/unlink', { identity_id: 'any' }],
  [
    'account/password',
    {
      current_password: testPassword,
      new_password: 'quiet morning rivers',
      repeat_password: 'quiet morning rivers',
    },
  ],
  ['account/second-factor', { code: '123456' }],
  ['account/second-factor/recovery-codes'],
  ['account/passkeys', { name: 'mine', passkey_state: 'x', passkey_response: '{}' }],
  ['account/passkeys/remove', { passkey: 'any' }],
  ['share/ada', { kind: 'user', name: 'bob', level: 'open' }],
  ['make-share-link/ada', { expires_in: '3600', link_level: 'open' }],
];

const calls: readonly [method: string, path: string, body?: unknown][] = [
  ['POST', '/users/ada/tokens', { note: 'everlasting' }],
  ['POST', '/users', { usernames: ['x1'], admin: true }],
  ['POST', '/users/x1', { admin: true }],
  ['PATCH', '/users/bob', { admin: true }],
  ['DELETE', '/users/bob'],
  ['POST', '/users/bob/invitation'],
  ['POST', '/services/mine', { api_token: 'of-the-thief' }],
  ['PUT', '/services/mine', { api_token: 'of-the-thief' }],
  ['POST', '/roles/mine', { scopes: ['tokens'] }],
  ['PATCH', '/roles/crew-role', { scopes: ['tokens'] }],
  ['DELETE', '/roles/crew-role'],
  ['POST', '/roles/crew-role/assignments', { users: ['bob'] }],
  ['DELETE', '/roles/crew-role/assignments', { users: ['ada'] }],
  ['POST', '/groups', { groups: ['mine'] }],
  ['POST', '/groups/mine'],
  ['POST', '/groups/crew/users', { users: ['ada'] }],
  ['DELETE', '/groups/crew/users', { users: ['bob'] }],
  ['PUT', '/groups/crew/properties', { mine: true }],
  ['DELETE', '/groups/crew'],
  ['POST', '/shares/ada/', { user: 'bob' }],
  ['POST', '/share-codes/ada/', {}],
];

describe('with the cookies of an administrator who logged in an hour ago', () => {
  test.each(forms)('the form %s is not done, but asks who is there', async (path, fields) => {
    const before = await stateOfHub();
    const answer = await post(thief, path, fields);
    expect(answer.status, answer.body).toBe(403);
    expect(answer.body).toContain('Confirm it’s you');
    expect(answer.body).not.toContain('hub_');
    expect(await stateOfHub()).toEqual(before);
  });

  test.each(calls)('the API refuses %s %s and says what to do', async (method, path, body) => {
    const before = await stateOfHub();
    const answer = await callApi(thief, method, path, body);
    expect(answer.status, answer.body).toBe(403);
    expect(JSON.parse(answer.body)).toMatchObject({
      code: 'recent_login_required',
      confirm_url: `${hub.url}hub/confirm-login`,
    });
    expect(await stateOfHub()).toEqual(before);
  });

  test('the secret of a second factor is not shown', async () => {
    const answer = await thief.request(`${hub.url}hub/account/second-factor`);
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toBe(
      '/hub/confirm-login?next=%2Fhub%2Faccount%2Fsecond-factor',
    );
  });

  test('guessing the password there is guessing at the login', async () => {
    await using own = await createPasswordHub(['ada'], { Authenticator: { lockout_attempts: 3 } });
    const browser = await own.logIn('ada', testPassword);
    await ageLogins(own);
    const asks = await browser.request(`${own.url}hub/confirm-login`);
    const statuses: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const answer = await submitTo(browser, asks, '/hub/confirm-login', { password: `${round}` });
      statuses.push(answer.status);
    }
    expect(statuses).toEqual([403, 403, 403, 429, 429]);
  });

  test('the cookies are worth nothing once the user has confirmed, and never gain by it', async () => {
    const _csrf = await csrfOf(thief);
    const asks = await victim.request(`${hub.url}hub/confirm-login`);
    const confirmed = await submitTo(victim, asks, '/hub/confirm-login', {
      password: testPassword,
    });
    expect(confirmed.status).toBe(303);
    const made = await victim.follow(await post(victim, 'token', { note: 'mine' }));
    expect(made.body).toContain('Your new token');
    expect((await thief.request(`${hub.url}hub/home`)).status).toBe(302);
    const page = `${hub.url}hub/token`;
    const sent = await thief.request(page, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', referer: page },
      body: new URLSearchParams({ _csrf, note: 'theirs' }).toString(),
    });
    expect([sent.status, sent.headers.location?.split('?')[0]]).toEqual([303, '/hub/login']);
    const { body } = await victim.request(page);
    expect(body).not.toContain('theirs');
  });

  test('a form that waits in one session cannot be sent on in another, nor elsewhere', async () => {
    const own = await hub.logIn('bob', testPassword);
    const fields = { people: 'x1', admin: 'true' };
    const { body } = await post(thief, 'admin/new-users', fields);
    const waiting = /name="pending_form" value="([^"]+)"/.exec(body)?.[1] ?? '';
    expect(waiting).not.toBe('');
    const inOther = await post(own, 'token', { pending_form: waiting });
    expect(inOther.status).toBe(400);
    const remote = await post(thief, 'token', {
      pending_form: waiting,
      password: testPassword,
    });
    expect(remote.status).toBe(400);
  });
});

test('every change asks for a recent login, but for what ends things or is over with the login', () => {
  const unasked = [...declarations, ...allOperations]
    .filter(({ method, needsRecentLogin }) => method !== 'GET' && needsRecentLogin !== true)
    .map(({ id }) => id);
  expect([...new Set(unasked)].toSorted()).toEqual(
    [
      // Logins, tokens and links that end.
      'endSession',
      'endSessions',
      'revokeToken',
      'revokeInvitation',
      'liftLockout',
      'revokeOAuthToken',
      // Shares and their links that end.
      'revokeShare',
      'revokeSharesOfServer',
      'deleteShareCodes',
      'endShareOfUser',
      'endShareOfGroup',
      // Servers, services and the hub itself, which stay as they are configured.
      'createNamedServer',
      'changeNamedServer',
      'startDefaultServer',
      'startNamedServer',
      'stopDefaultServer',
      'stopNamedServer',
      'reportActivity',
      'extendDefaultServer',
      'extendNamedServer',
      'chooseStartAtLogin',
      'restartService',
      'startService',
      'stopService',
      'shutDown',
      'checkRoutes',
      'startServerOfUser',
      'stopServersOfUser',
      'beginStartOfDefaultServer',
      'beginStartOfNamedServer',
      'beginStopOfDefaultServer',
      'beginStopOfNamedServer',
      'restartDefaultServer',
      'restartNamedServer',
      // What others share is theirs to end; an app loses what it was allowed.
      'acceptShareCode',
      'revokeOwnClient',
      // How the account and what is on it are called.
      'changeOwnProfile',
      'renameOwnPasskey',
      'dismissFirstRun',
      'markOwnFavourite',
      // They ask for a code of the app itself.
      'turnOffOwnApp',
      'renewOwnRecoveryCodesByCode',
      // They change nothing.
      'writeLinks',
      'replaceProxy',
      'createTokenByPassword',
      'postUserInfo',
      'exportActivity',
      'exportUsage',
      // Of OAuth clients; what they get ends with the login.
      'decideAuthorization',
      'exchangeCode',
      'authorizeDevice',
      'pushAuthorization',
      'introspectToken',
      // Of a server's own token, about itself.
      'tellAddressOfDefaultServer',
      'tellAddressOfNamedServer',
      // Questions and reports of gateways, with a scope that no user can hold.
      'askForGateway',
    ].toSorted(),
  );
});

test('with an old login users still do what only ends things, and log out', async () => {
  const other = await hub.logIn('ada', testPassword);
  expect((await post(thief, 'sessions/end-others')).status).toBe(303);
  expect((await other.request(`${hub.url}hub/home`)).status).toBe(302);
  expect((await post(thief, 'admin/users/bob/end-sessions')).status).toBe(303);
  expect((await callApi(thief, 'DELETE', '/users/bob/sessions')).status).toBe(204);
  expect((await post(thief, 'logout')).status).toBe(200);
});

test('API tokens are asked for nothing, and the setting turns it off', async () => {
  await using off = await createPasswordHub(['ada'], {
    Authenticator: { recent_login_seconds: 0 },
  });
  const browser = await off.logIn('ada', testPassword);
  await ageLogins(off);
  const page = await browser.request(`${off.url}hub/account`);
  const made = await browser.follow(await submitTo(browser, page, '/hub/token', { note: 'x' }));
  expect(made.status).toBe(200);
  const token = /hub_[\w-]{43}/.exec(made.body)?.[0];
  const answer = await off.api('/users/ada/tokens', token, { method: 'POST', body: '{}' });
  expect(answer.status).toBe(201);
});
