import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HubAuth } from '../../src/client/client.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import {
  environmentOf,
  managedService,
  openWithConsent,
  printsEnvironment,
  untilState,
} from '../support/services.ts';
import { createTestHub, submitForm, submitLogin, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
let whoami: string;
const callback = '/services/hand-made/oauth_callback';
const clientSecret = 'secret-of-the-hand-made-client';

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      load_groups: [{ name: 'staff', users: ['alice'] }],
      load_roles: [
        { name: 'user', scopes: ['self'] },
        { name: 'opens', scopes: ['access:services'], users: ['alice', 'bob', 'gina', 'hugo'] },
        { name: 'opens-whoami', scopes: ['access:services!service=whoami'], users: ['carol'] },
        { name: 'guests', scopes: ['access:services'], groups: ['guests'] },
      ],
      services: [
        await managedService('whoami', 'examples/whoami/whoami.ts'),
        await printsEnvironment('shows'),
        // A client that uses none of the hub's own code.
        { name: 'hand-made', api_token: clientSecret },
      ],
    },
  });
  whoami = `${hub.url}services/whoami/`;
  await untilState(hub, 'whoami', 'ready');
  await untilState(hub, 'shows', 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

function authorizeUrl(parameters: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({
    client_id: 'service-hand-made',
    redirect_uri: callback,
    response_type: 'code',
    state: 'xyz',
    ...parameters,
  });
  return `${hub.url}hub/api/oauth2/authorize?${query}`;
}

/** A code for the hand-made client, as it stands in the redirect. */
async function codeFor(browser: FakeBrowser): Promise<string> {
  const page = await browser.request(authorizeUrl());
  const answer = page.body.includes('name="decision"')
    ? await submitForm(browser, page, { decision: 'allow' })
    : page;
  return new URL(answer.headers.location ?? '', hub.url).searchParams.get('code') ?? '';
}

async function exchange(fields: Readonly<Record<string, string>>): Promise<Response> {
  return fetch(`${hub.apiUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: 'service-hand-made',
      client_secret: clientSecret,
      redirect_uri: callback,
      ...fields,
    }),
  });
}

async function tokenFor(browser: FakeBrowser): Promise<string> {
  const answer = await exchange({ code: await codeFor(browser) });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { access_token: string }).access_token;
}

describe('Endpoints: GET /hub/api/oauth2/authorize', () => {
  test('without hub credentials: 302 to /hub/login, and from there back to it', async () => {
    const browser = new FakeBrowser();
    const answer = await browser.request(authorizeUrl());
    expect(answer.status).toBe(302);
    const login = new URL(answer.headers.location ?? '', hub.url);
    expect(login.pathname).toBe('/hub/login');
    const page = await browser.request(login.href);
    const loggedIn = await submitForm(browser, page, { username: 'alice', password: 'test' });
    expect(loggedIn.headers.location).toContain('/hub/api/oauth2/authorize?client_id=service-hand');
  });

  test('with credentials: the authorization confirmation page', async () => {
    const browser = await hub.logIn('hugo');
    const page = await browser.request(authorizeUrl());
    expect(page.status).toBe(200);
    expect(page.body).toContain('Allow hand-made?');
  });

  test('after acceptance: 302 to the redirect uri with the code in the URL parameter code', async () => {
    const browser = await hub.logIn('hugo');
    const page = await browser.request(authorizeUrl());
    const answer = await submitForm(browser, page, { decision: 'allow' });
    expect(answer.status).toBe(302);
    const location = new URL(answer.headers.location ?? '');
    expect(location.href.startsWith(`${hub.url}services/hand-made/oauth_callback?`)).toBe(true);
    expect(location.searchParams.get('code')).toMatch(/^\S{20,}$/);
    expect(location.searchParams.get('state')).toBe('xyz');
  });

  test('after Deny: 302 to the redirect uri with an error, and no code', async () => {
    const browser = await hub.logIn('hugo');
    const page = await browser.request(authorizeUrl());
    const answer = await submitForm(browser, page, { decision: 'deny' });
    const { searchParams } = new URL(answer.headers.location ?? '');
    expect(searchParams.get('error')).toBe('access_denied');
    expect(searchParams.has('code')).toBe(false);
  });
});

describe('Endpoints: POST /hub/api/oauth2/token', () => {
  test('the client sends the code, and the response includes an API token', async () => {
    const browser = await hub.logIn('alice');
    const answer = await exchange({ code: await codeFor(browser) });
    expect(answer.status).toBe(200);
    const body = (await answer.json()) as Record<string, unknown>;
    expect(body['token_type']).toMatch(/^bearer$/i);
    const user = await hub.api('/user', String(body['access_token']));
    expect(await user.json()).toMatchObject({ name: 'alice' });
  });

  test('a code is short-lived and works once', async () => {
    const code = await codeFor(await hub.logIn('alice'));
    expect((await exchange({ code })).status).toBe(200);
    const again = await exchange({ code });
    expect(again.status).toBe(400);
    expect(await again.json()).toMatchObject({ error: 'invalid_grant' });
  });
});

describe('Endpoints: GET /hub/api/user', () => {
  test('with the header Authorization: token <ACCESS_TOKEN>: the JSON user model', async () => {
    const answer = await hub.api('/user', await tokenFor(await hub.logIn('alice')));
    expect(answer.headers.get('content-type')).toContain('application/json');
    expect(await answer.json()).toMatchObject({ name: 'alice' });
  });

  test('with an unusable token no user is identified', async () => {
    for (const token of ['nonsense', randomUUID(), 'a'.repeat(4000)]) {
      const answer = await hub.api('/user', token);
      expect(answer.status).toBe(403);
      expect(await answer.json()).not.toHaveProperty('name');
    }
    expect((await hub.api('/user', undefined)).status).toBe(403);
  });
});

describe('User model', () => {
  test('name is the user name, groups the groups, scopes what the token was granted', async () => {
    const token = await tokenFor(await hub.logIn('alice'));
    const user = (await (await hub.api('/user', token)).json()) as Record<string, unknown>;
    expect(user).toMatchObject({ name: 'alice', groups: ['staff'] });
    expect(user['scopes']).toEqual(
      expect.arrayContaining(['access:services!service=hand-made', 'read:users:name!user=alice']),
    );
    expect(user['scopes']).not.toContain('access:services');
  });

  test('scopes name the access to servers in both spellings', async () => {
    const answer = await hub.api('/users/alice/tokens', 'admin-service-token', {
      method: 'POST',
      body: '{}',
    });
    const { token } = (await answer.json()) as { token: string };
    const user = (await (await hub.api('/user', token)).json()) as { scopes: string[] };
    const access = user.scopes.filter((scope) => scope.startsWith('access:'));
    expect(access.some((scope) => scope.startsWith('access:users:servers!'))).toBe(true);
    expect(access.some((scope) => scope.startsWith('access:servers!'))).toBe(true);
  });

  test('HubAuth.user_for_token returns no user for a token that cannot be resolved', async () => {
    const { environment } = await environmentOf(hub, 'shows');
    const hubAuth = new HubAuth({ environment });
    expect(await hubAuth.user_for_token('nonsense')).toBeNull();
    const token = await tokenFor(await hub.logIn('alice'));
    expect(await hubAuth.user_for_token(token)).toMatchObject({ name: 'alice' });
  });
});

describe('Token transport', () => {
  test('2a: in the Authorization header as token <API_TOKEN>, and as Bearer', async () => {
    const token = await tokenFor(await hub.logIn('alice'));
    for (const scheme of ['token', 'Bearer']) {
      const headers = { authorization: `${scheme} ${token}` };
      expect((await fetch(`${hub.apiUrl}/user`, { headers })).status).toBe(200);
    }
  });

  test('2b: in the URL parameter token, at the API and at a service', async () => {
    expect((await fetch(`${hub.apiUrl}/user?token=admin-service-token`)).status).toBe(200);
    const answer = await fetch(`${whoami}api?token=admin-service-token`);
    expect(await answer.json()).toMatchObject({ name: 'admin-service' });
  });

  test('2c: as the outcome of the OAuth flow, for browsers', async () => {
    const browser = await hub.logIn('alice');
    const page = await openWithConsent(browser, whoami);
    expect(page.status).toBe(200);
    expect(browser.cookieNames()).toContain('service-whoami');
  });

  test('3: the login at the hub alone does not open a service', async () => {
    const browser = await hub.logIn('alice');
    const answer = await browser.request(whoami);
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toContain('/hub/api/oauth2/authorize');
  });

  test('3: the token of one service does not open another one', async () => {
    const token = await tokenFor(await hub.logIn('alice'));
    const answer = await fetch(`${whoami}api`, { headers: { authorization: `token ${token}` } });
    expect(answer.status).toBe(403);
  });

  test('4: the hub authenticates every API request', async () => {
    for (const path of ['/users', '/services', '/groups', '/proxy', '/info', '/users/alice']) {
      expect((await hub.api(path, undefined)).status, path).toBe(403);
      expect((await hub.api(path, 'nonsense')).status, path).toBe(403);
    }
  });

  test('4: the token identifies the originating service', async () => {
    const { environment } = await environmentOf(hub, 'shows');
    const names = await Promise.all(
      [clientSecret, environment['HUB_API_TOKEN']].map(async (token) => {
        const user = (await (await hub.api('/user', token)).json()) as { name: string };
        return user.name;
      }),
    );
    expect(names).toEqual(['hand-made', 'shows']);
  });

  test('6: any OAuth 2 client will do: code, token, GET /hub/api/user', async () => {
    const token = await tokenFor(await hub.logIn('bob'));
    expect(await (await hub.api('/user', token)).json()).toMatchObject({ name: 'bob' });
  });
});

describe('One OAuth flow', () => {
  test('1 to 6: a browser without credentials ends at the page it asked for', async () => {
    const browser = new FakeBrowser();
    const asked = `${whoami}?x=1&y=%20`;
    const toHub = await browser.request(asked);
    expect(toHub.status).toBe(302);
    const authorize = new URL(toHub.headers.location ?? '', hub.url);
    expect(authorize.pathname).toBe('/hub/api/oauth2/authorize');
    expect(Object.fromEntries(authorize.searchParams)).toMatchObject({
      client_id: 'service-whoami',
      redirect_uri: '/services/whoami/oauth_callback',
      scope: 'access:services!service=whoami',
    });

    const toLogin = await browser.request(authorize.href);
    const loginPage = await browser.request(new URL(toLogin.headers.location ?? '', hub.url).href);
    const toAuthorize = await submitForm(browser, loginPage, {
      username: 'gina',
      password: 'test',
    });
    const consent = await browser.request(
      new URL(toAuthorize.headers.location ?? '', hub.url).href,
    );
    const toCallback = await submitForm(browser, consent, { decision: 'allow' });
    const back = new URL(toCallback.headers.location ?? '', hub.url);
    expect(back.pathname).toBe('/services/whoami/oauth_callback');
    expect(back.searchParams.get('code')).toMatch(/^[\w-]{16,}$/);

    const toPage = await browser.request(back.href);
    expect(toPage.status).toBe(302);
    expect(new URL(toPage.headers.location ?? '', hub.url).href).toBe(asked);
    expect(browser.cookieNames()).toContain('service-whoami');
    const page = await browser.request(asked);
    expect(page.body).toContain('Hello, gina');
  });

  test('6: without an original URL the browser lands on the default page', async () => {
    const browser = await hub.logIn('alice');
    await openWithConsent(browser, whoami);
    // A callback that is opened again, as from the history, belongs to no login any more.
    const answer = await browser.request(`${whoami}oauth_callback?code=a&state=b`);
    expect(answer.status).toBe(403);
  });
});

describe('Service callback rules', () => {
  /** A browser in the middle of a login: the state is in its cookie and in the answer. */
  async function begun() {
    const browser = await hub.logIn('alice');
    const answer = await browser.request(`${whoami}page`);
    const state = new URL(answer.headers.location ?? '', hub.url).searchParams.get('state') ?? '';
    return { browser, state };
  }

  test('1: the service appends a state to the login URL and stores it in the state cookie', async () => {
    const { browser, state } = await begun();
    expect(state).toMatch(/^\S{16,}$/);
    const name = browser
      .cookieNames()
      .find((each) => each.startsWith('service-whoami-oauth-state'));
    expect(name).toBeDefined();
    expect(browser.cookie(name ?? '')?.path).toBe('/services/whoami/');
  });

  test('2: without code the answer is 403', async () => {
    const { browser, state } = await begun();
    const answer = await browser.request(`${whoami}oauth_callback?state=${state}`);
    expect(answer.status).toBe(403);
  });

  test('3: without state, or with one that differs from the cookie, the answer is 403', async () => {
    const { browser, state } = await begun();
    const other = `${state.slice(0, -1)}${state.endsWith('A') ? 'B' : 'A'}`;
    for (const query of ['code=abc', `code=abc&state=${other}`, 'code=abc&state=']) {
      expect((await browser.request(`${whoami}oauth_callback?${query}`)).status, query).toBe(403);
    }
    const foreignProcess = new FakeBrowser();
    const answer = await foreignProcess.request(`${whoami}oauth_callback?code=abc&state=${state}`);
    expect(answer.status).toBe(403);
  });

  test('5: a request whose token is missing or resolves to no user is led to login again', async () => {
    const browser = await hub.logIn('alice');
    await openWithConsent(browser, whoami);
    const cookie = browser.cookie('service-whoami')!;
    browser.setCookie('service-whoami', 'not-a-token', cookie.path);
    const broken = await browser.request(whoami);
    expect(broken.headers.location).toContain('/hub/api/oauth2/authorize');
  });
});

describe('Access control', () => {
  test('1: completing OAuth for a service requires access:services!service=<service_name>', async () => {
    const carol = await hub.logIn('carol');
    expect((await openWithConsent(carol, whoami)).status).toBe(200);
    const refused = await carol.open(authorizeUrl());
    expect(refused.status).toBe(403);
    expect(refused.body).toContain('permission');
  });

  test('2: the required scopes are in HUB_OAUTH_SCOPES and in oauth_scopes', async () => {
    const { environment } = await environmentOf(hub, 'shows');
    const hubAuth = new HubAuth({ environment });
    expect(JSON.parse(environment['HUB_OAUTH_SCOPES'] ?? '')).toEqual(hubAuth.oauth_scopes);
    expect(hubAuth.oauth_scopes).toContain('access:services!service=shows');
  });

  test('3: scopes are checked on every access: a role taken away closes the service, the token stays', async () => {
    await hub.logIn('dana');
    await hub.api('/groups/guests', 'admin-service-token', { method: 'POST' });
    const members = (method: string) =>
      hub.api('/groups/guests/users', 'admin-service-token', {
        method,
        body: JSON.stringify({ users: ['dana'] }),
      });
    expect((await members('POST')).ok).toBe(true);
    const browser = await hub.logIn('dana');
    const token = await tokenFor(browser);
    const scopesNow = async () =>
      ((await (await hub.api('/user', token)).json()) as { scopes: string[] }).scopes;
    expect(await scopesNow()).toContain('access:services!service=hand-made');
    expect((await members('DELETE')).ok).toBe(true);
    expect((await hub.api('/user', token)).status).toBe(200);
    expect(await scopesNow()).not.toContain('access:services!service=hand-made');
    expect((await members('POST')).ok).toBe(true);
    expect(await scopesNow()).toContain('access:services!service=hand-made');
  });

  test('4: who matches is allowed, also with the wider scope for all services', async () => {
    expect((await openWithConsent(await hub.logIn('alice'), whoami)).status).toBe(200);
  });
});

describe('Authenticated endpoint behaviour', () => {
  test('authorized: the request is allowed', async () => {
    const browser = await hub.logIn('bob');
    await openWithConsent(browser, whoami);
    expect((await browser.request(whoami)).status).toBe(200);
  });

  test('authenticated but not authorized: 403 permission denied', async () => {
    const browser = await hub.logIn('eve');
    const answer = await browser.open(whoami);
    expect(answer.status).toBe(403);
    const token = 'a-token-that-eve-made';
    expect((await fetch(`${whoami}api?token=${token}`)).status).toBe(401);
    const direct = await fetch(`${whoami}api`, {
      headers: { authorization: `token ${clientSecret}` },
    });
    expect(direct.status).toBe(403);
  });

  test('not authenticated: redirects end at the original URL, once logged in', async () => {
    const browser = new FakeBrowser();
    const login = await browser.open(`${whoami}?from=here`);
    expect(login.body).toContain('name="username"');
    const next = await submitForm(browser, login, { username: 'bob', password: 'test' });
    const page = await openWithConsent(browser, new URL(next.headers.location ?? '', hub.url).href);
    expect(page.url).toBe(`${whoami}?from=here`);
    expect(page.body).toContain('Hello, bob');
  });

  test('a browser that keeps no cookie ends at a page that says so, not in an endless loop', async () => {
    const browser = await hub.logIn('bob');
    await openWithConsent(browser, whoami);
    // Every time the token cookie is lost, as in a browser that refuses it.
    const statuses: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      browser.setCookie('service-whoami', '', '/services/whoami/');
      statuses.push((await browser.open(whoami)).status);
    }
    expect(statuses.every((status) => status === 200 || status === 403)).toBe(true);
  });
});

describe('Errors', () => {
  test('a body of an error is JSON with status, code and message for a program', async () => {
    const answer = await hub.api('/users', undefined);
    expect(await answer.json()).toMatchObject({
      status: 403,
      code: 'forbidden',
      message: expect.any(String),
    });
  });

  test('an expired token on an API call of a long-lived page is 401, not a login page', async () => {
    const answer = await new FakeBrowser().request(`${whoami}api`, {
      headers: { 'sec-fetch-mode': 'cors', accept: 'application/json' },
    });
    expect(answer.status).toBe(401);
  });

  test('a wrong password is 401 on the login page, and no login', async () => {
    const browser = new FakeBrowser();
    const answer = await submitLogin(browser, hub.url, 'alice', 'wrong');
    expect(answer.status).toBe(401);
    // Only the password has to be typed once more.
    expect(answer.body).toMatch(/<input[^>]* name="username"[^>]* value="alice"/);
    expect(answer.body).not.toMatch(/value="wrong"/);
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);
  });
});
