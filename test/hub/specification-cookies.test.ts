import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Secret } from '../../src/platform/config/secret.ts';
import { createSealer } from '../../src/platform/crypto/sealer.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { createOwnService } from '../support/own-service.ts';
import {
  managedService,
  openWithConsent,
  untilState,
  usersOpenServices,
} from '../support/services.ts';
import { createTestHub, submitLogin, type TestHub, until } from '../support/test-hub.ts';

const cookieSecret = '9d1be2f7a05c4e8813f6d2a97b40c5ee6a1f08d3c7b29e54f1806ad37c92be41';
const daySeconds = 86_400;
let hub: TestHub;
let whoami: string;
let guarded: string;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      cookie_secret: cookieSecret,
      load_roles: usersOpenServices,
      services: [
        await managedService('whoami', 'examples/whoami/whoami.ts', { oauth_no_confirm: true }),
        await managedService('guarded', 'fixtures/apps/gateway-app.cjs', {
          access: 'gateway',
          oauth_no_confirm: true,
        }),
      ],
    },
  });
  whoami = `${hub.url}services/whoami/`;
  guarded = `${hub.url}services/guarded/`;
  await untilState(hub, 'whoami', 'ready');
  await untilState(hub, 'guarded', 'ready');
});

afterAll(async () => hub[Symbol.asyncDispose]());

/** The Set-Cookie line of a cookie in the answer to a login. */
async function setCookieLine(of: Pick<TestHub, 'url'>, name: string): Promise<string> {
  const answer = await submitLogin(new FakeBrowser(), of.url, 'alice', 'test');
  const line = answer.headers['set-cookie']?.find((each) => each.startsWith(`${name}=`));
  if (line === undefined) throw new Error(`${name} was not set: ${answer.headers['set-cookie']}`);
  return line;
}

function maxAgeOf(line: string): number {
  return Number(/max-age=(\d+)/i.exec(line)?.[1]);
}

async function tokensOf(userName: string): Promise<unknown[]> {
  const answer = await hub.api(`/users/${userName}/tokens`, 'admin-service-token');
  const model = (await answer.json()) as { oauth_tokens?: unknown[]; api_tokens?: unknown[] };
  return [...(model.oauth_tokens ?? []), ...(model.api_tokens ?? [])];
}

describe('Cookies', () => {
  test('hub-hub-login is set by the hub on path /hub/, HttpOnly and SameSite=Lax', async () => {
    const line = await setCookieLine(hub, 'hub-hub-login');
    expect(line).toMatch(/; path=\/hub\/(;|$)/i);
    expect(line).toMatch(/; httponly/i);
    expect(line).toMatch(/; samesite=lax/i);
  });

  test('hub-hub-login is confined to the path below a base URL', async () => {
    const port = await freePort();
    await using based = await createTestHub({
      Hub: { bind_url: `http://127.0.0.1:${port}/team/` },
    });
    expect(await setCookieLine(based, 'hub-hub-login')).toMatch(/; path=\/team\/hub\/(;|$)/i);
    expect(await setCookieLine(based, 'hub-session-id')).toMatch(/; path=\/team\/(;|$)/i);
  });

  test('hub-hub-login is encrypted with Hub.cookie_secret', async () => {
    const browser = await hub.logIn('alice');
    const { value } = browser.cookie('hub-hub-login')!;
    const open = (secret: string) =>
      createSealer([new Secret(secret)], 'login-cookie').open(value, 'hub-hub-login');
    const key = open(cookieSecret);
    expect(key).toBeDefined();
    expect(value).not.toContain(key);
    expect(open(cookieSecret.replace('9', '8'))).toBeUndefined();
    expect(value).not.toContain(browser.cookie('hub-session-id')?.value);
  });

  test('hub-hub-login lasts Hub.cookie_max_age_days, 14 days by default', async () => {
    expect(maxAgeOf(await setCookieLine(hub, 'hub-hub-login'))).toBe(14 * daySeconds);
    await using other = await createTestHub({ Hub: { cookie_max_age_days: 2.5 } });
    expect(maxAgeOf(await setCookieLine(other, 'hub-hub-login'))).toBe(2.5 * daySeconds);
  });

  test('hub-hub-login is Secure exactly where the public URL is https', async () => {
    expect(await setCookieLine(hub, 'hub-hub-login')).not.toMatch(/; secure/i);
    await using other = await createTestHub({ Hub: { public_url: 'https://hub.example/' } });
    const internal = other.hub.publicServer.address();
    if (internal === null || typeof internal === 'string') throw new Error('no port');
    const url = `http://127.0.0.1:${internal.port}/`;
    expect(await setCookieLine({ url }, 'hub-hub-login')).toMatch(/; secure/i);
    expect(await setCookieLine({ url }, 'hub-session-id')).toMatch(/; secure/i);
  });

  test('hub-session-id is shared, for the session of the browser, and no credential', async () => {
    const line = await setCookieLine(hub, 'hub-session-id');
    expect(line).toMatch(/; path=\/(;|$)/i);
    expect(line).toMatch(/; httponly/i);
    expect(line).not.toMatch(/max-age|expires/i);
    const thief = new FakeBrowser();
    thief.setCookie('hub-session-id', line.split(/[=;]/)[1] ?? '');
    expect((await thief.request(`${hub.url}hub/home`)).status).toBe(302);
    expect((await thief.request(guarded)).status).toBe(302);
  });

  test('service state cookie: set by the service on its path, HttpOnly, gone when the flow completes', async () => {
    const browser = await hub.logIn('alice');
    for (const url of [whoami, guarded]) {
      const started = await browser.request(url);
      const [line = ''] = started.headers['set-cookie'] ?? [];
      expect(line).toMatch(/^service-\w+-oauth-state/);
      expect(line).toContain(`Path=${new URL(url).pathname}`);
      expect(line).toMatch(/httponly/i);
      expect(maxAgeOf(line)).toBe(600);
      await browser.open(new URL(started.headers.location ?? '', hub.url).href);
      const [name = ''] = line.split('=');
      expect(browser.cookieNames()).not.toContain(name);
    }
  });

  test('service token cookie: encrypted, confined to the path of the service, HttpOnly', async () => {
    for (const url of [whoami, guarded]) {
      const browser = await hub.logIn('alice');
      expect((await browser.open(url)).status).toBe(200);
      const name = `service-${new URL(url).pathname.split('/')[2]}`;
      const { path, attributes, value } = browser.cookie(name)!;
      expect(path).toBe(new URL(url).pathname);
      expect(attributes).toMatch(/httponly/i);
      const asToken = await hub.api('/user', value);
      expect(asToken.status).toBe(403);
    }
  });

  test('the cookie hub-services does not exist any more', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(whoami);
    expect(browser.cookieNames()).not.toContain('hub-services');
  });
});

describe('Logout', () => {
  test('1: the hub-hub-login cookie is revoked: the next request to the hub needs a new login, also with the old cookie', async () => {
    const browser = await hub.logIn('alice');
    const cookie = browser.cookieHeader(`${hub.url}hub/home`);
    await browser.request(`${hub.url}hub/logout`);
    expect(browser.cookieNames()).not.toContain('hub-hub-login');
    expect((await browser.request(`${hub.url}hub/home`)).headers.location).toContain('/hub/login');
    const replay = await new FakeBrowser().request(`${hub.url}hub/home`, { headers: { cookie } });
    expect(replay.headers.location).toContain('/hub/login');
  });

  test('2: the tokens of the login are revoked through hub-session-id, those of others are not', async () => {
    const [leaving, staying] = [await hub.logIn('bob'), await hub.logIn('bob')];
    for (const browser of [leaving, staying]) {
      await browser.open(whoami);
      await browser.open(guarded);
    }
    expect(await tokensOf('bob')).toHaveLength(4);
    await leaving.request(`${hub.url}hub/logout`);
    expect(await tokensOf('bob')).toHaveLength(2);
    expect((await staying.request(guarded)).status).toBe(200);
    expect((await staying.request(whoami)).status).toBe(200);
  });

  test('2: the token cookie of the service cannot be cleared at that moment, and opens nothing', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(whoami);
    await browser.open(guarded);
    await browser.request(`${hub.url}hub/logout`);
    expect(browser.cookieNames()).toEqual(
      expect.arrayContaining(['service-whoami', 'service-guarded']),
    );
    for (const url of [whoami, guarded]) {
      expect((await browser.request(url)).headers.location).toContain('/hub/api/oauth2/authorize');
    }
  });

  test('3: hub-session-id is cleared, which keeps the cached answers of services from being used', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(whoami);
    expect((await browser.request(whoami)).status).toBe(200);
    await browser.request(`${hub.url}hub/logout`);
    expect(browser.cookieNames()).not.toContain('hub-session-id');
    // The service would remember its token for five minutes.
    expect((await browser.request(whoami)).status).toBe(302);
  });
});

describe('States and transitions', () => {
  test('Token-response cache of a client expires: a revoked token is denied then, and a good one is not', async () => {
    await using service = await createOwnService('cached');
    await using own = await createTestHub({
      Hub: { load_roles: usersOpenServices, services: [service.config] },
    });
    const hubAuth = service.connect(own, { cache_max_age: 300 });
    await untilState(own, 'cached', 'ready');
    const browser = await own.logIn('alice');
    const url = `${own.url}services/cached/`;
    expect((await browser.open(url)).body).toBe('visitor alice');
    const answer = await own.api('/users/alice/tokens', 'admin-service-token');
    const { oauth_tokens = [], api_tokens = [] } = (await answer.json()) as Record<
      string,
      { id: string }[]
    >;
    for (const { id } of [...oauth_tokens, ...api_tokens]) {
      await own.api(`/users/alice/tokens/${id}`, 'admin-service-token', { method: 'DELETE' });
    }
    expect((await browser.request(url)).body).toBe('visitor alice');
    hubAuth.cache_max_age = 0;
    expect((await browser.request(url)).status).toBe(302);
    expect((await browser.open(url)).body).toBe('visitor alice');
    expect((await browser.request(url)).body).toBe('visitor alice');
  });

  test('Internal token expired but still in the cookie: no user, and the OAuth flow begins again', async () => {
    await using short = await createTestHub({
      Hub: {
        oauth_token_expires_in: 1,
        load_roles: usersOpenServices,
        services: [
          await managedService('guarded', 'fixtures/apps/gateway-app.cjs', {
            access: 'gateway',
            oauth_no_confirm: true,
          }),
        ],
      },
    });
    await untilState(short, 'guarded', 'ready');
    const browser = await short.logIn('alice');
    const url = `${short.url}services/guarded/`;
    expect((await browser.open(url)).status).toBe(200);
    const { value } = browser.cookie('service-guarded')!;
    await until(async () => (await browser.request(url)).status === 302, 'the token has expired');
    // Transparent: no form on the way, and a new token at the end.
    expect((await browser.open(url)).status).toBe(200);
    expect(browser.cookie('service-guarded')?.value).not.toBe(value);
  });

  test('Token cookie expires: no credentials, the flow begins again; an API request may fail', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(guarded);
    browser.setCookie('service-guarded', '', '/services/guarded/');
    const api = await browser.request(guarded, { headers: { 'sec-fetch-mode': 'cors' } });
    expect(api.status).toBe(401);
    expect((await browser.open(guarded)).status).toBe(200);
  });

  test('hub-hub-login expires: the hub asks for a login, access to what was open is not lost by this alone', async () => {
    await using short = await createTestHub({
      Hub: {
        cookie_max_age_days: 3 / daySeconds,
        oauth_token_expires_in: 3600,
        load_roles: usersOpenServices,
        services: [
          await managedService('guarded', 'fixtures/apps/gateway-app.cjs', {
            access: 'gateway',
            oauth_no_confirm: true,
          }),
        ],
      },
    });
    await untilState(short, 'guarded', 'ready');
    const browser = await short.logIn('alice');
    const url = `${short.url}services/guarded/`;
    expect((await browser.open(url)).status).toBe(200);
    await until(
      async () => (await browser.request(`${short.url}hub/home`)).status === 302,
      'the login has expired',
    );
    expect((await browser.request(url)).status).toBe(200);
  });

  test('Hub cookie key reset: hub-hub-login is invalid for all users', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'hub-key-reset-'));
    await using before = await createTestHub(
      { Hub: { cookie_secret: cookieSecret } },
      { directory },
    );
    const browsers = [await before.logIn('alice'), await before.logIn('bob')];
    await before[Symbol.asyncDispose]();
    const changed = cookieSecret.split('').toReversed().join('');
    await using after = await createTestHub({ Hub: { cookie_secret: changed } }, { directory });
    for (const browser of browsers) {
      const answer = await browser.request(`${after.url}hub/home`);
      expect(answer.headers.location).toContain('/hub/login');
    }
    await rm(directory, { recursive: true });
  });
});

describe('Limits', () => {
  test('Client cache of hub token responses: five minutes by default, cache_max_age or cookie_cache_max_age', async () => {
    await using service = await createOwnService('cached');
    expect(service.connect(hub).cache_max_age).toBe(300);
    expect(service.connect(hub, { cache_max_age: 7 }).cookie_cache_max_age).toBe(7);
    expect(service.connect(hub, { cookie_cache_max_age: 8 }).cache_max_age).toBe(8);
  });

  test.each([
    ['the same as the cookie lifetime by default', {}, 14 * daySeconds],
    ['set by Hub.cookie_max_age_days first', { cookie_max_age_days: 3 }, 3 * daySeconds],
    [
      'overridable by Hub.oauth_token_expires_in',
      { cookie_max_age_days: 3, oauth_token_expires_in: 90 },
      90,
    ],
  ])('Internal oauth token lifetime: %s', async (_name, settings, expected) => {
    await using own = await createTestHub({
      Hub: {
        ...settings,
        load_roles: usersOpenServices,
        services: [{ name: 'bare', api_token: 'secret-of-bare', oauth_no_confirm: true }],
      },
    });
    const browser = await own.logIn('alice');
    const query = new URLSearchParams({
      client_id: 'service-bare',
      redirect_uri: '/services/bare/oauth_callback',
      response_type: 'code',
      state: 's',
    });
    const answer = await browser.request(`${own.url}hub/api/oauth2/authorize?${query}`);
    const code = new URL(answer.headers.location ?? '').searchParams.get('code') ?? '';
    const token = await fetch(`${own.apiUrl}/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: 'service-bare',
        client_secret: 'secret-of-bare',
        redirect_uri: '/services/bare/oauth_callback',
        code,
      }),
    });
    const { expires_in } = (await token.json()) as { expires_in: number };
    expect(Math.abs(expires_in - expected)).toBeLessThanOrEqual(5);
  });

  test('the token cookie lasts as long as the token', async () => {
    const browser = await hub.logIn('alice');
    await openWithConsent(browser, guarded);
    const { attributes } = browser.cookie('service-guarded')!;
    expect(Math.abs(maxAgeOf(attributes) - 14 * daySeconds)).toBeLessThanOrEqual(5);
  });
});
