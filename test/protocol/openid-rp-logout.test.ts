import { afterAll, beforeAll, expect, test } from 'vitest';
import type { BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import { submitForm, type TestHub } from '../support/test-hub.ts';

/** OpenID Connect RP-Initiated Logout 1.0. */
const apps = ['grafana', 'gitlab'].map((name) => ({
  name,
  api_token: `secret-of-the-service-${name}`,
  oauth_redirect_uri: `http://${name}.localhost:1/callback`,
  oauth_post_logout_uris: [`http://${name}.localhost:1/bye?from=hub`, '/services/bye'],
  oauth_no_confirm: true,
}));
const bye = 'http://grafana.localhost:1/bye?from=hub';
const crossSite = { headers: { 'sec-fetch-site': 'cross-site' } };

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasswordHub(['ada'], {
    Hub: { services: apps, load_roles: usersOpenServices },
  });
});
afterAll(() => hub[Symbol.asyncDispose]());

/** A browser that is logged in, and the ID token that an app got. */
async function logIn(name = 'grafana') {
  const browser = await hub.logIn('ada', testPassword);
  const query = { response_type: 'code', client_id: `service-${name}`, scope: 'openid' };
  const url = `${hub.url}hub/api/oauth2/authorize?${new URLSearchParams(query)}`;
  const { location = '' } = (await browser.request(url)).headers;
  const answer = await fetch(`${hub.url}hub/api/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: new URL(location).searchParams.get('code') ?? '',
      client_id: `service-${name}`,
      client_secret: `secret-of-the-service-${name}`,
    }),
  });
  const { id_token: hint } = (await answer.json()) as { id_token: string };
  return { browser, hint };
}

const logoutUrl = (parameters: Record<string, string> | string[][]) =>
  `${hub.url}hub/logout?${new URLSearchParams(parameters as Record<string, string>)}`;

const isLoggedIn = async (browser: FakeBrowser) =>
  (await browser.request(`${hub.url}hub/home`)).status === 200;

test('§2, §3 the ID token of the login ends it without a question, and the app gets the browser and the state back', async () => {
  const { browser, hint } = await logIn();
  const parameters = { id_token_hint: hint, post_logout_redirect_uri: bye, state: 'a b&c' };
  const answer = await browser.request(logoutUrl(parameters), crossSite);
  expect(answer.headers.location).toBe(`${bye}&state=a+b%26c`);
  expect(await isLoggedIn(browser)).toBe(false);
  // A user who is logged out already is sent on all the same.
  expect((await browser.request(logoutUrl(parameters))).headers.location).toContain(bye);
});

test('§2 takes a POST as well, which comes without cookies', async () => {
  const { browser, hint } = await logIn();
  const body = new URLSearchParams({ id_token_hint: hint, post_logout_redirect_uri: bye });
  const posted = await fetch(`${hub.url}hub/logout`, { method: 'POST', body, redirect: 'manual' });
  expect(posted.status).toBe(303);
  const next = new URL(posted.headers.get('location') ?? '', hub.url);
  expect((await browser.request(next.href, crossSite)).headers.location).toBe(bye);
  expect(await isLoggedIn(browser)).toBe(false);
});

test.each<[string, (hint: string, other: string) => Record<string, string>]>([
  ['no hint', () => ({ client_id: 'service-grafana' })],
  ['a hint that is no token', () => ({ id_token_hint: 'none', client_id: 'service-grafana' })],
  [
    'an unsigned hint',
    (hint) => ({
      id_token_hint: `${btoa('{"alg":"none","typ":"JWT"}')}.${hint.split('.')[1]}.`,
      client_id: 'service-grafana',
    }),
  ],
  ['the hint of another login', (_, other) => ({ id_token_hint: other })],
])(
  '§2 with %s the user is asked, by the name of the app, and then goes on there',
  async (_what, asking) => {
    const other = await logIn();
    const { browser, hint } = await logIn();
    const parameters = { ...asking(hint, other.hint), post_logout_redirect_uri: bye, state: 's' };
    const asked = await browser.request(logoutUrl(parameters), crossSite);
    expect(asked.status).toBe(200);
    expect(asked.body).toContain('grafana sent you here');
    expect(await isLoggedIn(browser)).toBe(true);
    const done = await submitForm(browser, asked, {});
    expect(await isLoggedIn(browser)).toBe(false);
    expect(goesOnTo(done)).toBe(`${bye}&state=s`);
    expect(await isLoggedIn(other.browser)).toBe(true);
  },
);

/** A form of the hub leads to other sites by a page. */
function goesOnTo({ headers }: BrowserAnswer): string | undefined {
  return headers.location ?? String(headers['refresh']).split('url=')[1];
}

test('a page of another site logs nobody out', async () => {
  const { browser } = await logIn();
  for (const parameters of [{}, { state: 's' }, { client_id: 'unknown' }]) {
    const answer = await browser.request(logoutUrl(parameters), crossSite);
    expect([answer.status, answer.headers.location]).toEqual([200, undefined]);
  }
  const forged = { ...crossSite, method: 'POST', body: 'client_id=service-grafana&_csrf=guessed' };
  const headers = { ...crossSite.headers, 'content-type': 'application/x-www-form-urlencoded' };
  const refused = await browser.request(`${hub.url}hub/logout`, { ...forged, headers });
  expect(refused.status).toBe(403);
  expect(await isLoggedIn(browser)).toBe(true);
});

test('§3 nobody is sent to an address that the client has not registered, and nobody is logged out', async () => {
  const { browser, hint } = await logIn();
  const gitlab = 'http://gitlab.localhost:1/bye?from=hub';
  const uris = [`${bye}#`, `${bye}&x`, 'http://grafana.localhost:1/bye', gitlab, '//evil.example'];
  for (const uri of uris) {
    const parameters = { id_token_hint: hint, post_logout_redirect_uri: uri };
    const answer = await browser.request(logoutUrl(parameters));
    expect([answer.status, answer.headers.location], uri).toEqual([400, undefined]);
  }
  // Nor without saying which client it is, or when that is said in two ways.
  for (const more of [{ client_id: 'service-gitlab' }, { client_id: 'unknown' }]) {
    const parameters = { id_token_hint: hint, post_logout_redirect_uri: bye, ...more };
    expect((await browser.request(logoutUrl(parameters))).status).toBe(400);
  }
  const twice = [
    ['id_token_hint', hint],
    ['post_logout_redirect_uri', bye],
    ['post_logout_redirect_uri', gitlab],
  ];
  expect((await browser.request(logoutUrl(twice))).status).toBe(400);
  expect(await isLoggedIn(browser)).toBe(true);
  const unnamed = await browser.request(logoutUrl({ post_logout_redirect_uri: bye }));
  expect([unnamed.status, unnamed.headers.location]).toEqual([200, undefined]);
});

test('a path among the registered ones is one on the origin of the app', async () => {
  const { browser, hint } = await logIn();
  const parameters = { id_token_hint: hint, post_logout_redirect_uri: '/services/bye' };
  const { location } = (await browser.request(logoutUrl(parameters))).headers;
  expect(location).toBe(new URL('/services/bye', hub.url).href);
});
