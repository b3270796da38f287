import { expect, test } from 'vitest';
import { createExternalHub } from '../support/external-hub.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { type ScriptedProvider, startScriptedProvider } from '../support/scripted-provider.ts';
import { createTestHub, submitForm, type TestHub, until } from '../support/test-hub.ts';

const logoutEvent = { 'http://schemas.openid.net/event/backchannel-logout': {} };

test('logging out of the hub leads to the provider with the ID token as a hint, and back', async () => {
  await using external = await createExternalHub();
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  const left = await browser.request(`${hub.url}hub/logout`);
  expect(left.status).toBe(200);
  expect(left.body).toContain('You are logged out here');
  expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);

  const target = new URL(/^0;url=(.*)$/.exec(String(left.headers['refresh']))?.[1] ?? '');
  expect(left.body).toContain('Continue to Example Login');
  expect(target.origin).toBe(provider.issuer);
  expect(target.searchParams.get('post_logout_redirect_uri')).toBe(`${hub.url}hub/logout`);
  expect(target.searchParams.get('id_token_hint')).toMatch(/^eyJ/);
  // The provider knows the token as its own and asks; afterwards its session is over, too.
  const asked = await browser.request(target.href);
  expect(asked.status).toBe(200);
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(asked.body)?.[1] ?? '';
  const confirmed = await browser.request(`${provider.issuer}/session/end/confirm`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
  });
  expect(new URL(confirmed.headers.location ?? '').href).toBe(`${hub.url}hub/logout`);
  expect((await browser.request(`${hub.url}hub/logout`)).body).toContain('You are logged out');
});

test('a logout at the provider ends the login here by its back channel', async () => {
  await using external = await createExternalHub({ options: { scope: 'openid profile' } });
  const { hub, provider } = external;
  const browser = await external.logIn('alice');
  const other = await external.logIn('alice', new FakeBrowser());
  const asked = await browser.request(`${provider.issuer}/session/end`);
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(asked.body)?.[1] ?? '';
  await browser.request(`${provider.issuer}/session/end/confirm`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
  });
  await until(
    async () => (await browser.request(`${hub.url}hub/home`)).status === 302,
    'the provider has told the hub',
  );
  // The other browser has a session of its own at the provider (sid).
  expect((await other.request(`${hub.url}hub/home`)).status).toBe(200);
});

async function createScripted() {
  const provider = await startScriptedProvider();
  const hub = await createTestHub({
    Hub: { authenticator_class: 'oidc' },
    OIDCAuthenticator: {
      issuer: provider.issuer,
      client_id: 'the-hub',
      client_secret: 'a secret of the hub',
      allow_insecure_requests: true,
    },
  });
  const sessions = new AsyncDisposableStack();
  sessions.use(provider);
  sessions.use(hub);
  return { provider, hub, [Symbol.asyncDispose]: () => sessions.disposeAsync() };
}

async function logIn(hub: TestHub, provider: ScriptedProvider, sid: string): Promise<FakeBrowser> {
  const browser = new FakeBrowser();
  provider.idClaims = { sid };
  const back = await provider.begin(browser, hub.url);
  expect((await browser.request(back.href)).status).toBe(302);
  return browser;
}

const isIn = async (hub: TestHub, browser: FakeBrowser): Promise<boolean> =>
  (await browser.request(`${hub.url}hub/home`)).status === 200;

function send(hub: TestHub, logoutToken: string): Promise<Response> {
  const body = new URLSearchParams({ logout_token: logoutToken });
  return fetch(`${hub.url}hub/backchannel_logout`, { method: 'POST', body });
}

let tokens = 0;
function logoutClaims(provider: ScriptedProvider, change: Record<string, unknown> = {}) {
  const now = Math.floor(Date.now() / 1000);
  tokens += 1;
  const claims = {
    iss: provider.issuer,
    aud: 'the-hub',
    iat: now,
    exp: now + 120,
    jti: `logout-${tokens}`,
    events: logoutEvent,
    sub: 'subject-1',
    ...change,
  };
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
}

test('a logout token ends one session by sid, and all of a person by sub', async () => {
  await using scripted = await createScripted();
  const { hub, provider } = scripted;
  const [first, second, third] = [
    await logIn(hub, provider, 'sid-1'),
    await logIn(hub, provider, 'sid-2'),
    await logIn(hub, provider, 'sid-3'),
  ];
  const bySid = await provider.sign(logoutClaims(provider, { sub: undefined, sid: 'sid-1' }));
  const answer = await send(hub, bySid);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(await isIn(hub, first)).toBe(false);
  expect(await isIn(hub, second)).toBe(true);

  const both = logoutClaims(provider, { sid: 'sid-2' });
  expect((await send(hub, await provider.sign(both, { typ: 'logout+jwt' }))).status).toBe(200);
  expect(await isIn(hub, second)).toBe(false);
  expect(await isIn(hub, third)).toBe(true);

  expect((await send(hub, await provider.sign(logoutClaims(provider)))).status).toBe(200);
  expect(await isIn(hub, third)).toBe(false);
});

test('a logout token that is used again ends nothing', async () => {
  await using scripted = await createScripted();
  const { hub, provider } = scripted;
  await logIn(hub, provider, 'sid-1');
  const token = await provider.sign(logoutClaims(provider));
  expect((await send(hub, token)).status).toBe(200);
  const later = await logIn(hub, provider, 'sid-2');
  const replayed = await send(hub, token);
  expect(replayed.status).toBe(400);
  expect(await replayed.json()).toMatchObject({ error: 'invalid_request' });
  expect(await isIn(hub, later)).toBe(true);
  expect(JSON.stringify(hub.logLines)).toContain('logout token replayed');
});

test('a logout token that is wrong ends nothing', async () => {
  await using scripted = await createScripted();
  const { hub, provider } = scripted;
  const browser = await logIn(hub, provider, 'sid-1');
  const now = Math.floor(Date.now() / 1000);
  const wrong: Record<string, Record<string, unknown>> = {
    'of another issuer': { iss: 'https://evil.example' },
    'for another client': { aud: 'another' },
    'with a nonce, as an ID token has': { nonce: provider.nonce },
    'without the event': { events: {} },
    'with another event': { events: { 'http://example.org/event': {} } },
    'with an event that is no object': { events: { [Object.keys(logoutEvent)[0] ?? '']: true } },
    'without events': { events: undefined },
    'without jti': { jti: undefined },
    'without iat': { iat: undefined },
    'about no user': { sub: undefined, sid: undefined },
    'about an object': { sub: { toString: 1 } },
    'that has expired': { exp: now - 3600, iat: now - 3700 },
    'without an end and too old': { exp: undefined, iat: now - 3600 },
    'from the future': { iat: now + 3600, exp: now + 7200 },
  };
  for (const [what, change] of Object.entries(wrong)) {
    const answer = await send(hub, await provider.sign(logoutClaims(provider, change)));
    expect(answer.status, what).toBe(400);
  }
  const claims = logoutClaims(provider);
  const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;
  for (const token of [
    unsigned,
    await provider.signWithPublicKey(claims),
    await provider.sign(claims, { typ: 'at+jwt' }),
    'garbage',
    'x'.repeat(20_000),
  ]) {
    expect((await send(hub, token)).status).toBe(400);
  }
  expect((await fetch(`${hub.url}hub/backchannel_logout`, { method: 'POST' })).status).toBe(415);
  const twice = new URLSearchParams([
    ['logout_token', await provider.sign(claims)],
    ['logout_token', 'other'],
  ]);
  const answer = await fetch(`${hub.url}hub/backchannel_logout`, { method: 'POST', body: twice });
  expect(answer.status).toBe(400);
  expect(await isIn(hub, browser)).toBe(true);
});

test('a logout with a form goes on to the provider from a page, which no policy forbids', async () => {
  await using external = await createExternalHub();
  const { hub } = external;
  const browser = await external.logIn('alice');
  const home = await browser.request(`${hub.url}hub/home`);
  const form = home.body.slice(home.body.indexOf('action="/hub/logout"') - 60);
  const left = await submitForm(browser, { ...home, body: form }, {});
  expect(left.status).toBe(200);
  expect(left.headers['refresh']).toMatch(/^0;url=http/);
});
