import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { createOwnService, type OwnService } from '../support/own-service.ts';
import {
  adminToken,
  createServerHub,
  fixtureApp,
  guarded,
  serverPath,
  startUntilReady,
} from '../support/server-hub.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

/** The base path on which JupyterHub tests itself. */
const basePath = '/@/space%20word/';

const withBasePath = async (path: string) => `http://127.0.0.1:${await freePort()}${path}`;

describe('a hub below a path with characters of all kinds', () => {
  let hub: TestHub;
  let origin: string;
  let oauthService: OwnService;

  beforeAll(async () => {
    oauthService = await createOwnService('own');
    hub = await createServerHub({
      Hub: {
        bind_url: await withBasePath(basePath),
        services: [
          { ...oauthService.config, oauth_no_confirm: false },
          {
            name: 'app',
            access: 'gateway',
            oauth_no_confirm: false,
            url: `http://127.0.0.1:${await freePort()}`,
            command: fixtureApp('web-server'),
          },
        ],
        load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      },
      Authenticator: { admin_users: ['ada'] },
      // One server that logs visitors in by itself.
      Spawner: {
        access: 'server',
        cmd: guarded(...fixtureApp('plain-web-app'), '{port}'),
        args: [],
        start_timeout: 300,
        http_timeout: 300,
      },
    });
    oauthService.connect(hub, { service_prefix: `${basePath}services/own/` });
    // The service answers 500 until it is connected, and is then asked again within a second.
    await Promise.all(['own', 'app'].map((name) => untilState(hub, name, 'ready')));
    ({ origin } = new URL(hub.url));
  });
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]();
    await oauthService?.[Symbol.asyncDispose]();
  });

  test('has its own address in every way, and its cookies there', async () => {
    expect(hub.url).toBe(`${origin}${basePath}`);
    const browser = await hub.logIn('alice');
    expect(browser.cookie('hub-hub-login')?.path).toBe(`${basePath}hub/`);
    const home = await browser.open(hub.url);
    expect([home.status, home.url]).toEqual([200, `${origin}${basePath}hub/home`]);
    const stylesheet = /<link rel="stylesheet" href="([^"]*)"/.exec(home.body)?.[1] ?? '';
    expect((await browser.request(origin + stylesheet)).status).toBe(200);
    const next = `${basePath}hub/token`;
    const login = await new FakeBrowser().request(origin + next);
    expect(login.headers.location).toBe(`${basePath}hub/login?next=${encodeURIComponent(next)}`);
  });

  test.each([
    ['/', basePath],
    ['/?x=1', `${basePath}?x=1`],
    ['/@/space%20word', basePath],
    ['/@/space%20word?x=1', `${basePath}?x=1`],
    ['/%40/space%20word/hub/home', `${basePath}hub/home`],
    ['/@/%73pace%20word/hub/api/?a=%2F', `${basePath}hub/api/?a=%2F`],
  ])('is where %s leads', async (path, target) => {
    const answer = await new FakeBrowser().request(origin + path);
    expect([answer.status, answer.headers.location]).toEqual([307, target]);
  });

  test.each(['/other/', '/@', '/@/space%20words/', '/@/hub/home'])('is not %s', async (path) => {
    expect((await new FakeBrowser().request(origin + path)).status).toBe(404);
  });

  test.each(['own', 'app'])('logs visitors in at the service %s', async (name) => {
    const browser = await hub.logIn('bob');
    const url = `${hub.url}services/${name}/some/page?x=%2F1`;
    const consent = await browser.open(url);
    expect(consent.body).toContain(`Allow ${name}?`);
    const allowed = await submitForm(browser, consent, { decision: 'allow' });
    const page = await browser.open(new URL(allowed.headers.location ?? '', hub.url).href);
    expect([page.status, page.url]).toEqual([200, url]);
    expect(browser.cookie(`service-${name}`)?.path).toBe(`${basePath}services/${name}/`);
  });

  test('is the issuer of its OAuth provider, with the metadata where RFC 8414 puts it', async () => {
    const url = `${origin}/.well-known/oauth-authorization-server${basePath.slice(0, -1)}`;
    const metadata = (await (await fetch(url)).json()) as Record<string, string>;
    expect(metadata['issuer']).toBe(hub.url.slice(0, -1));
    expect(metadata['token_endpoint']).toBe(`${hub.url}hub/api/oauth2/token`);
  });

  test("starts users' servers, which answer over HTTP and WebSocket", async () => {
    const browser = await hub.logIn('carl');
    await startUntilReady(hub, serverPath('carl'));
    const url = `${hub.url}user/carl/x?y=1`;
    const page = await browser.open(url);
    expect([page.status, page.url]).toEqual([200, url]);
    expect(JSON.parse(page.body)).toMatchObject({ url: `${basePath}user/carl/x?y=1` });
    const socket = new WebSocket(url.replace('http', 'ws'), {
      headers: { cookie: browser.cookieHeader(url), origin },
    });
    await once(socket, 'open');
    socket.send('there?');
    expect(String((await once(socket, 'message'))[0])).toBe('there?');
    socket.terminate();
    const { status } = await hub.api(serverPath('carl'), adminToken, { method: 'DELETE' });
    expect(status).toBe(204);
    const stopped = await browser.open(url);
    expect([stopped.status, stopped.url]).toEqual([424, `${hub.url}hub/user/carl/x?y=1`]);
  });

  test('has an administration', async () => {
    const ada = await hub.logIn('ada');
    const page = await ada.open(`${hub.url}hub/admin/users`);
    expect(page.status).toBe(200);
    expect(page.body).toContain(`href="${basePath}hub/admin/users/alice"`);
  });

  test.runIf(hasChromium())('keeps a real browser logged in', async () => {
    const browser = await startChromium();
    try {
      const { page, complaints } = await openProfile(browser);
      await page.goto(origin);
      await page.getByLabel('User name').fill('dora');
      await page.getByLabel('Password', { exact: true }).fill('test');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.waitForURL(`${hub.url}hub/home`);
      await page.goto(`${hub.url}services/own/`);
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.getByText('visitor dora').waitFor();
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});

test('the root and the path without its slash lead to any base path', async () => {
  await using hub = await createTestHub({ Hub: { bind_url: await withBasePath('/team/') } });
  const { origin } = new URL(hub.url);
  for (const path of ['/', '/team']) {
    const answer = await new FakeBrowser().request(origin + path);
    expect([answer.status, answer.headers.location]).toEqual([307, '/team/']);
  }
  expect((await new FakeBrowser().request(`${origin}/teams`)).status).toBe(404);
});
