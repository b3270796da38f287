import { describe, expect, test } from 'vitest';
import { FakeBrowser } from '../../test/support/fake-browser.ts';
import {
  alice,
  beginLogin,
  bob,
  startGuardedService,
  stateCookieOf,
} from '../../test/support/guarded-service.ts';
import { HubOAuth } from './hub-oauth.ts';

describe('a login', () => {
  test('One OAuth flow: leads through the hub and back to the page that was asked for', async () => {
    await using parts = await startGuardedService();
    const page = await parts.browser.open(`${parts.prefix}reports/7?sort=name&q=%20a`);
    expect(page.status).toBe(200);
    expect(page.body).toBe('alice at /services/x/reports/7?sort=name&q=%20a');
  });

  test('One OAuth flow 2: asks with client id, redirect URI, scopes, state and S256 challenge', async () => {
    await using parts = await startGuardedService({ request_scopes: ['custom:x:write'] });
    await parts.browser.open(parts.prefix);
    const [query] = parts.hub.authorizeRequests;
    expect(Object.fromEntries(query ?? [])).toEqual({
      response_type: 'code',
      client_id: 'service-x',
      redirect_uri: '/services/x/oauth_callback',
      scope: 'access:services!service=x custom:x:write',
      state: expect.stringMatching(/^[\w-]{32}$/) as string,
      code_challenge: expect.stringMatching(/^[\w-]{43}$/) as string,
      code_challenge_method: 'S256',
    });
  });

  test('asks for access to the own server only, though wider scopes admit as well', async () => {
    await using parts = await startGuardedService({
      oauth_scopes: ['access:servers!server=alice/', 'access:servers!user=alice', 'access:servers'],
    });
    await parts.browser.request(parts.prefix);
    const begun = parts.hubAuth.login({ headers: {} });
    const location = begun.kind === 'redirect' ? begun.location : '';
    expect(new URL(location).searchParams.get('scope')).toBe('access:servers!server=alice/');
  });

  test('keeps the token encrypted in a cookie confined to the path of the service', async () => {
    await using parts = await startGuardedService();
    await parts.browser.open(parts.prefix);
    const cookie = parts.browser.cookie('service-x');
    expect(cookie?.path).toBe('/services/x/');
    expect(cookie?.attributes).toMatch(/HttpOnly/);
    expect(cookie?.attributes).toMatch(/SameSite=Lax/);
    expect(cookie?.attributes).toMatch(/Max-Age=1000/);
    expect(cookie?.attributes).not.toMatch(/Secure/);
    for (const token of parts.hub.users.keys()) {
      expect(Buffer.from(cookie?.value ?? '', 'base64url').toString('latin1')).not.toContain(token);
      expect(parts.hubAuth.cookieToken(`a=b; service-x=${cookie?.value}`)).toBe(token);
    }
  });

  test('marks its cookies Secure where the public URL is https', async () => {
    await using parts = await startGuardedService({ public_url: 'https://hub.example.org/' });
    const redirect = await parts.browser.request(parts.prefix);
    expect(redirect.headers['set-cookie']?.[0]).toMatch(/; Secure/);
  });

  test('leaves nothing of the login under way behind but a short memory against loops', async () => {
    await using parts = await startGuardedService();
    await parts.browser.open(parts.prefix);
    expect(parts.browser.cookieNames()).toEqual(['service-x-oauth-state-round', 'service-x']);
    expect(parts.browser.cookie('service-x-oauth-state-round')?.attributes).toMatch(/Max-Age=30;/);
  });

  test('survives a restart of the service between its two halves', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser, `${parts.prefix}deep`);
    parts.restart();
    expect((await parts.browser.open(callback.href)).body).toBe('alice at /services/x/deep');
  });

  test('does not disturb others of the same browser that are under way', async () => {
    await using parts = await startGuardedService();
    const paths = ['a', 'b', 'c', 'd', 'e'];
    const callbacks: URL[] = [];
    for (const path of paths) {
      callbacks.push(await beginLogin(parts, parts.browser, `${parts.prefix}${path}`));
    }
    for (const [index, path] of paths.entries()) {
      const answer = await parts.browser.request(callbacks[index]?.href ?? '');
      expect(answer.headers.location).toBe(`/services/x/${path}`);
    }
  });

  test('does not disturb another that begins at the same moment, as when tabs are restored', async () => {
    await using parts = await startGuardedService();
    const first = parts.hubAuth.login({ headers: {}, url: '/services/x/first' });
    const second = parts.hubAuth.login({ headers: {}, url: '/services/x/second' });
    for (const { setCookies } of [first, second]) {
      const [name = '', value = ''] = setCookies[0]?.split(';')[0]?.split('=') ?? [];
      parts.browser.setCookie(name, value, '/services/x/');
    }
    for (const [begun, path] of [
      [first, 'first'],
      [second, 'second'],
    ] as const) {
      const location = begun.kind === 'redirect' ? begun.location : '';
      const authorize = await fetch(location, { redirect: 'manual' });
      const answer = await parts.browser.request(authorize.headers.get('location') ?? '');
      expect(answer.headers.location).toBe(`/services/x/${path}`);
    }
  });

  test('keeps a bounded number of them, and gives up the oldest', async () => {
    await using parts = await startGuardedService();
    const first = await beginLogin(parts, parts.browser);
    for (let count = 0; count < 30; count += 1) await parts.browser.request(parts.prefix);
    const states = parts.browser.cookieNames().filter((name) => name.includes('oauth-state'));
    expect(states).toHaveLength(8);
    expect((await parts.browser.request(first.href)).status).toBe(403);
  });

  test('forgets a session whose token was revoked, and starts again by itself', async () => {
    await using parts = await startGuardedService({ cache_max_age: 0 });
    await parts.browser.open(parts.prefix);
    parts.hub.users.clear();
    expect((await parts.browser.request(parts.prefix)).status).toBe(302);
    expect((await parts.browser.open(parts.prefix)).body).toMatch(/^alice/);
  });
});

describe('Service callback rules', () => {
  test('2: without a code the answer is 403', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    callback.searchParams.delete('code');
    expect((await parts.browser.request(callback.href)).status).toBe(403);
  });

  test('3: without a state the answer is 403', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    callback.searchParams.delete('state');
    expect((await parts.browser.request(callback.href)).status).toBe(403);
  });

  test('3: with another state than that of the cookie the answer is 403, and no code is used', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    const tampered = new URL(callback);
    const state = callback.searchParams.get('state') ?? '';
    tampered.searchParams.set('state', `${state.slice(0, -1)}${state.endsWith('A') ? 'B' : 'A'}`);
    expect((await parts.browser.request(tampered.href)).status).toBe(403);
    expect((await parts.browser.request(callback.href)).status).toBe(302);
  });

  test('4: leads to the prefix of the service when no page was asked for', async () => {
    await using parts = await startGuardedService();
    const begun = parts.hubAuth.login({ headers: {} }, 'https://evil.example/');
    const [name = '', value = ''] = begun.setCookies[0]?.split(';')[0]?.split('=') ?? [];
    parts.browser.setCookie(name, value);
    const location = begun.kind === 'redirect' ? begun.location : '';
    const authorize = await fetch(location, { redirect: 'manual' });
    const answer = await parts.browser.request(authorize.headers.get('location') ?? '');
    expect(answer.headers.location).toBe('/services/x/');
  });

  test('5: a token that resolves to no user leads to the login', async () => {
    await using parts = await startGuardedService();
    const answer = await parts.browser.request(`${parts.prefix}a?token=unknown&b=1`);
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toContain('/hub/api/oauth2/authorize?');
    expect((await parts.browser.open(`${parts.prefix}a?token=unknown&b=1`)).url).toBe(
      `${parts.prefix}a?b=1`,
    );
  });

  test('a refused consent is 403, said in plain words', async () => {
    await using parts = await startGuardedService();
    parts.hub.loggedIn = undefined;
    const page = await parts.browser.open(parts.prefix);
    expect(page.status).toBe(403);
    expect(page.body).toContain('was not granted');
  });

  test('a code that was used already is 403', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    const { name, value } = stateCookieOf(parts.browser);
    await parts.browser.request(callback.href);
    parts.browser.setCookie(name, value, '/services/x/');
    expect((await parts.browser.request(callback.href)).status).toBe(403);
  });

  test('RFC 9207 §2.4 an answer of another issuer is 403', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    callback.searchParams.set('iss', 'https://evil.example');
    expect((await parts.browser.request(callback.href)).status).toBe(403);
  });

  test('a service whose own secret is wrong answers 500, and tells the operator why', async () => {
    await using parts = await startGuardedService();
    parts.hub.clients.set('service-x', 'a-different-secret');
    expect((await parts.browser.open(parts.prefix)).status).toBe(500);
    expect(parts.failures).toHaveLength(1);
  });

  test('a hub that fails during the exchange is 502, and loading the page again succeeds', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    parts.hub.failure = 500;
    expect((await parts.browser.request(callback.href)).status).toBe(502);
    parts.hub.failure = undefined;
    expect((await parts.browser.open(callback.href)).status).toBe(200);
  });
});

describe('Authenticated endpoint behaviour', () => {
  test('authenticated but not authorized is 403, never a redirect', async () => {
    await using parts = await startGuardedService();
    parts.hub.loggedIn = { name: 'eve', scopes: [] };
    const page = await parts.browser.open(parts.prefix);
    expect(page.status).toBe(403);
    expect(page.body).toContain('do not have permission');
  });

  test('a scope that was lost since the login closes the service', async () => {
    await using parts = await startGuardedService({ cache_max_age: 0 });
    await parts.browser.open(parts.prefix);
    for (const token of parts.hub.users.keys())
      parts.hub.users.set(token, { ...alice, scopes: [] });
    expect((await parts.browser.request(parts.prefix)).status).toBe(403);
  });

  test('a fetch without a login is 401 JSON with a challenge', async () => {
    await using parts = await startGuardedService();
    const answer = await fetch(`${parts.prefix}api`, { redirect: 'manual' });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe('Basic realm="hub", Bearer realm="hub"');
    expect(await answer.json()).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  test('a failing hub is 502 and an unreachable one 503, not a login', async () => {
    await using parts = await startGuardedService({ cache_max_age: 0 });
    await parts.browser.open(parts.prefix);
    parts.hub.failure = 500;
    expect((await parts.browser.request(parts.prefix)).status).toBe(502);
    await parts.hub[Symbol.asyncDispose]();
    expect((await parts.browser.request(parts.prefix)).status).toBe(503);
  });

  test('a browser that does not keep the token cookie ends at a page that says so', async () => {
    await using parts = await startGuardedService();
    let answer = await parts.browser.request(parts.prefix);
    let redirects = 0;
    while (answer.status === 302 && redirects < 50) {
      redirects += 1;
      parts.browser.setCookie('service-x', 'lost', '/services/x/');
      const next = new URL(answer.headers.location ?? '', answer.url).href;
      answer = await parts.browser.request(next);
    }
    expect(answer.status).toBe(403);
    expect(answer.body).toContain('cookies');
    expect(redirects).toBeLessThan(12);
  });

  test('a browser that refuses all cookies ends at the first callback', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, new FakeBrowser());
    expect((await new FakeBrowser().request(callback.href)).status).toBe(403);
  });
});

describe('attacks', () => {
  test('RFC 9700 §4.7 a callback of the attacker does not log the victim in as her', async () => {
    await using parts = await startGuardedService();
    parts.hub.loggedIn = bob;
    const callbackOfMallory = await beginLogin(parts, new FakeBrowser());
    await beginLogin(parts, parts.browser);
    expect((await parts.browser.request(callbackOfMallory.href)).status).toBe(403);
    expect(parts.browser.cookie('service-x')).toBeUndefined();
  });

  test('a state cookie with a changed byte is refused', async () => {
    await using parts = await startGuardedService();
    const callback = await beginLogin(parts, parts.browser);
    const { name, value } = stateCookieOf(parts.browser);
    const bytes = Buffer.from(value, 'base64url');
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    parts.browser.setCookie(name, bytes.toString('base64url'), '/services/x/');
    expect((await parts.browser.request(callback.href)).status).toBe(403);
  });

  test('a cookie sealed for another service does not open, even under one key', async () => {
    await using parts = await startGuardedService({ cookie_secret: 'one key of the gateway' });
    await parts.browser.open(parts.prefix);
    const value = parts.browser.cookie('service-x')?.value ?? '';
    const other = new HubOAuth({
      environment: {},
      service_name: 'y',
      api_token: 'the-secret-of-y',
      cookie_secret: 'one key of the gateway',
    });
    expect(parts.hubAuth.cookieToken(`service-x=${value}`)).toBeDefined();
    expect(other.cookieToken(`service-y=${value}`)).toBeUndefined();
  });

  test('a state cookie is no token cookie', async () => {
    await using parts = await startGuardedService();
    await beginLogin(parts, parts.browser);
    const { value } = stateCookieOf(parts.browser);
    expect(parts.hubAuth.cookieToken(`service-x=${value}`)).toBeUndefined();
  });

  test('two genuine token cookies in one request count as none', async () => {
    await using parts = await startGuardedService();
    await parts.browser.open(parts.prefix);
    parts.hub.loggedIn = bob;
    const mallory = new FakeBrowser();
    await mallory.open(parts.prefix);
    const own = `service-x=${parts.browser.cookie('service-x')?.value}`;
    const planted = `service-x=${mallory.cookie('service-x')?.value}`;
    expect(parts.hubAuth.cookieToken(`${planted}; ${own}`)).toBeUndefined();
    expect(parts.hubAuth.cookieToken(`${own}; ${own}`)).toBeDefined();
    expect(parts.hubAuth.cookieToken(`service-x=forged; ${own}`)).toBeDefined();
  });

  test.for([
    '//evil.example/',
    '//evil.example/services/x/',
    '/\\evil.example/services/x/',
    'http://evil.example/services/x/',
    '/services/x/../../hub/admin',
    '/services/x/%2e%2e/%2e%2e/hub/',
    '/services/xy/',
    '/user/bob/',
    '/services/x/\t/evil',
    '/services/x/oauth_callback?code=again',
  ])('RFC 9700 §4.11 the way back never leads to %j', async (next) => {
    await using parts = await startGuardedService();
    const begun = parts.hubAuth.login({ headers: {} }, next);
    const [name = '', value = ''] = begun.setCookies[0]?.split(';')[0]?.split('=') ?? [];
    parts.browser.setCookie(name, value, '/services/x/');
    const authorize = await fetch(begun.kind === 'redirect' ? begun.location : '', {
      redirect: 'manual',
    });
    const answer = await parts.browser.request(authorize.headers.get('location') ?? '');
    expect(answer.headers.location).toBe('/services/x/');
  });

  test('a Host header of the attacker changes no address of the login', async () => {
    await using parts = await startGuardedService();
    const decision = parts.hubAuth.login({
      url: '/services/x/',
      headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
    });
    expect(JSON.stringify(decision)).not.toContain('evil.example');
  });

  test('a form of another site cannot use the cookie', async () => {
    await using parts = await startGuardedService();
    await parts.browser.open(parts.prefix);
    const forged = {
      method: 'POST',
      headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    };
    const own = {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin', origin: parts.origin },
    };
    expect((await parts.browser.request(parts.prefix, forged)).status).toBe(403);
    expect((await parts.browser.request(parts.prefix, own)).status).toBe(200);
  });

  test('an error page shows what came in the URL nowhere', async () => {
    await using parts = await startGuardedService();
    const script = '<script>alert(1)</script>';
    const query = new URLSearchParams({ error: script, error_description: script });
    const page = await parts.browser.request(`${parts.prefix}oauth_callback?${query}`);
    expect(page.status).toBe(403);
    expect(page.body).not.toContain('alert');
  });
});

test('logout clears the own cookie and leads to the logout of the hub', async () => {
  await using parts = await startGuardedService();
  const decision = parts.hubAuth.logout({ headers: {} });
  expect(decision.location).toBe(`${parts.hub.origin}/hub/logout`);
  expect(decision.setCookies).toEqual([
    expect.stringMatching(/^service-x=; Path=\/services\/x\/; Max-Age=0/),
  ]);
});
