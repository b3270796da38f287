import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { programFile } from '../support/program-file.ts';
import { openWithConsent, projectDirectory } from '../support/services.ts';
import { createTestHub, submitForm, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      cleanup_servers: true,
      load_roles: [
        { name: 'user', scopes: ['self'] },
        { name: 'helps-alice', scopes: ['access:servers!user=alice'], users: ['helper'] },
      ],
    },
    Spawner: {
      cmd: [
        process.execPath,
        programFile('singleuser-main'),
        '--pass-token',
        '--',
        process.execPath,
        join(projectDirectory, 'fixtures/apps/prints-environment.cjs'),
      ],
    },
  });
  await startServer('alice');
});

afterAll(async () => hub[Symbol.asyncDispose]());

async function startServer(userName: string): Promise<void> {
  await hub.logIn(userName);
  const answer = await hub.api(`/users/${userName}/server`, 'admin-service-token', {
    method: 'POST',
  });
  expect([201, 202], await answer.text()).toContain(answer.status);
  await until(async () => {
    const user = await (await hub.api(`/users/${userName}`, 'admin-service-token')).json();
    return (user as { server: string | null }).server !== null;
  }, `the server of ${userName} runs`);
}

describe('What the service does', () => {
  test('3: a server sees only the hub as provider: all it is given points there', async () => {
    const browser = await hub.logIn('alice');
    const { environment } = JSON.parse((await browser.open(`${hub.url}user/alice/`)).body) as {
      environment: Record<string, string>;
    };
    expect(environment).toMatchObject({
      HUB_API_URL: hub.apiUrl,
      HUB_BASE_URL: hub.url,
      HUB_CLIENT_ID: 'hub-user-alice',
      HUB_SERVICE_PREFIX: '/user/alice/',
      HUB_USER: 'alice',
    });
  });

  test('4: there are two tokens: HUB_API_TOKEN of the server, and one of the login kept in the browser', async () => {
    const browser = await hub.logIn('alice');
    const { environment } = JSON.parse((await browser.open(`${hub.url}user/alice/`)).body) as {
      environment: Record<string, string>;
    };
    const own = await (await hub.api('/user', environment['HUB_API_TOKEN'])).json();
    expect(own).toMatchObject({ name: 'alice' });
    const { session_id, token_id } = own as { session_id: unknown; token_id: string };
    expect(session_id).toBeNull();
    await browser.request(`${hub.url}hub/logout`);
    const after = await (await hub.api('/user', environment['HUB_API_TOKEN'])).json();
    expect(after).toMatchObject({ token_id });
  });
});

describe('OAuth client ids', () => {
  test("a user's server is the client hub-user-<username>", async () => {
    const browser = await hub.logIn('alice');
    const answer = await browser.request(`${hub.url}user/alice/lab`);
    const location = new URL(answer.headers.location ?? '', hub.url);
    expect(location.searchParams.get('client_id')).toBe('hub-user-alice');
  });
});

describe('Endpoints', () => {
  test('GET /user/<username>/<path> without credentials: 302 to authorize with client id and redirect uri', async () => {
    const answer = await new FakeBrowser().request(`${hub.url}user/alice/lab`);
    expect(answer.status).toBe(302);
    const location = new URL(answer.headers.location ?? '', hub.url);
    expect(location.pathname).toBe('/hub/api/oauth2/authorize');
    expect(location.searchParams.get('redirect_uri')).toBe('/user/alice/oauth_callback');
  });

  test('GET /hub/api/oauth2/authorize: acceptance is automatic when a user visits their own server', async () => {
    const browser = await hub.logIn('alice');
    const start = await browser.request(`${hub.url}user/alice/lab`);
    const authorize = await browser.request(new URL(start.headers.location ?? '', hub.url).href);
    expect(authorize.status).toBe(302);
    expect(authorize.headers.location).toMatch(/\/user\/alice\/oauth_callback\?.*code=/);
  });

  test('GET /user/<username>/oauth_callback: sets a cookie with the encrypted token, 302 to the original URL', async () => {
    const browser = await hub.logIn('alice');
    const start = await browser.request(`${hub.url}user/alice/lab?a=1`);
    const authorize = await browser.request(new URL(start.headers.location ?? '', hub.url).href);
    const callback = await browser.request(new URL(authorize.headers.location ?? '', hub.url).href);
    expect(callback.status).toBe(302);
    expect(new URL(callback.headers.location ?? '', hub.url).href).toBe(
      `${hub.url}user/alice/lab?a=1`,
    );
    const cookie = browser.cookie('hub-user-alice')!;
    expect(cookie.path).toBe('/user/alice/');
    expect((await hub.api('/user', cookie.value)).status).toBe(403);
  });

  test('GET /user/<username>/<path> with a cookie: proceeds when the user model matches', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(`${hub.url}user/alice/`);
    expect((await browser.request(`${hub.url}user/alice/tree`)).status).toBe(200);
  });

  test("another user's visit: 403 without the access scope, a confirmation page with it", async () => {
    const foreignProcess = await hub.logIn('mallory');
    expect((await foreignProcess.open(`${hub.url}user/alice/`)).status).toBe(403);
    const helper = await hub.logIn('helper');
    const consent = await helper.open(`${hub.url}user/alice/`);
    expect(consent.body).toContain('name="decision"');
    expect((await openWithConsent(helper, `${hub.url}user/alice/`)).status).toBe(200);
  });
});

describe('Nested sequence', () => {
  test('1 to 6 with the form authenticator: from no credentials to the page that was asked for', async () => {
    const browser = new FakeBrowser();
    const login = await browser.open(`${hub.url}user/alice/lab?x=1`);
    expect(new URL(login.url).pathname).toBe('/hub/login');
    const loggedIn = await submitForm(browser, login, { username: 'alice', password: 'test' });
    const page = await browser.open(new URL(loggedIn.headers.location ?? '', hub.url).href);
    expect(page.url).toBe(`${hub.url}user/alice/lab?x=1`);
    expect(page.status).toBe(200);
  });
});

describe('Cookies', () => {
  test('hub-user-<username> lasts Hub.cookie_max_age_days, 14 days by default', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(`${hub.url}user/alice/`);
    const maxAge = Number(
      /max-age=(\d+)/i.exec(browser.cookie('hub-user-alice')?.attributes ?? '')?.[1],
    );
    expect(Math.abs(maxAge - 14 * 86_400)).toBeLessThanOrEqual(5);
  });
});

test('hub-hub-login expires: the hub asks for a login, an open server stays open by this alone', async () => {
  const browser = await hub.logIn('alice');
  expect((await browser.open(`${hub.url}user/alice/`)).status).toBe(200);
  // What is left of a cookie whose time is over: nothing the hub knows.
  browser.setCookie('hub-hub-login', '', '/hub/');
  const home = await browser.request(`${hub.url}hub/home`);
  expect(home.headers.location).toContain('/hub/login');
  expect((await browser.request(`${hub.url}user/alice/`)).status).toBe(200);
});

describe('Logout', () => {
  test('2 and 3: the token in hub-user-<username> is revoked, and the cached answer is not used', async () => {
    const browser = await hub.logIn('alice');
    await browser.open(`${hub.url}user/alice/`);
    expect((await browser.request(`${hub.url}user/alice/`)).status).toBe(200);
    await browser.request(`${hub.url}hub/logout`);
    expect(browser.cookieNames()).toContain('hub-user-alice');
    const answer = await browser.request(`${hub.url}user/alice/`);
    expect(answer.headers.location).toContain('/hub/api/oauth2/authorize');
  });
});

describe('Access control', () => {
  test('HUB_API_TOKEN of a server may report activity and open the server, and no more', async () => {
    const browser = await hub.logIn('alice');
    const { environment } = JSON.parse((await browser.open(`${hub.url}user/alice/`)).body) as {
      environment: Record<string, string>;
    };
    const token = environment['HUB_API_TOKEN'];
    const activity = await hub.api('/users/alice/activity', token, {
      method: 'POST',
      body: JSON.stringify({ last_activity: new Date().toISOString() }),
    });
    expect(activity.ok).toBe(true);
    expect((await hub.api('/users', token)).status).toBe(403);
    expect(
      (await hub.api('/users/alice/tokens', token, { method: 'POST', body: '{}' })).status,
    ).toBe(403);
    const { scopes } = (await (await hub.api('/user', token)).json()) as { scopes: string[] };
    expect(scopes).toContain('access:users:servers!server=alice/');
  });
});
