import { describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import {
  createServerHub,
  createUsers,
  fixtureApp,
  serverPath,
  startServer,
  startUntilReady,
  untilServer,
} from '../support/server-hub.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

/** Where a browser that is logged in ends from an address of the hub, without its origin. */
async function endOf(hub: TestHub, browser: FakeBrowser, path: string): Promise<string> {
  const { url } = await browser.open(hub.url + path);
  return url.slice(hub.url.length - 1);
}

describe('a login that asked for nothing, and the base URL,', () => {
  test('lead to the home page by default', async () => {
    await using hub = await createServerHub();
    const browser = await hub.logIn('alice');
    for (const path of ['', 'hub', 'hub/', 'hub/login']) {
      expect(await endOf(hub, browser, path)).toBe('/hub/home');
    }
  });

  test("lead to one's own server with redirect_to_server", async () => {
    await using hub = await createServerHub({ Hub: { redirect_to_server: true } });
    const browser = await hub.logIn('alice');
    for (const path of ['', 'hub', 'hub/', 'hub/login']) {
      expect(await endOf(hub, browser, path)).toBe('/hub/spawn');
      expect(await endOf(hub, browser, `${path}?energy=5`)).toBe('/hub/spawn?energy=5');
    }
    const foreignProcess = await fetch(`${hub.url}?energy=5`);
    expect(foreignProcess.url).toBe(`${hub.url}hub/login?next=%2Fhub%2F%3Fenergy%3D5`);
    await startUntilReady(hub, serverPath('alice'));
    expect(await endOf(hub, browser, 'hub/login')).toBe('/user/alice/');
    expect(await endOf(hub, browser, 'hub/login?keep=yes')).toBe('/user/alice/?keep=yes');
    expect(await endOf(hub, browser, 'hub/login?next=/hub/account')).toBe('/hub/account');
    expect(await endOf(hub, browser, 'hub/home')).toBe('/hub/home');
  });

  test('lead to the named server of default_server_name', async () => {
    await using hub = await createServerHub({
      Hub: { redirect_to_server: true, allow_named_servers: true, default_server_name: 'lab' },
    });
    const browser = await hub.logIn('alice');
    expect(await endOf(hub, browser, '')).toBe('/hub/spawn/alice/lab');
    await startUntilReady(hub, serverPath('alice', 'lab'));
    expect(await endOf(hub, browser, '')).toBe('/user/alice/lab/');
  });

  test('lead to default_url above all, and home where there are no servers', async () => {
    await using chosen = await createServerHub({
      Hub: { redirect_to_server: true, default_url: '/hub/account' },
    });
    expect(await endOf(chosen, await chosen.logIn('alice'), '')).toBe('/hub/account');
    const foreignProcess = await fetch(`${chosen.url}hub/`, { redirect: 'manual' });
    expect(foreignProcess.headers.get('location')).toBe('/hub/account');
    await using circle = await createServerHub({ Hub: { default_url: '/' } });
    expect(await endOf(circle, await circle.logIn('alice'), '')).toBe('/hub/home');
    await using bare = await createTestHub({ Hub: { redirect_to_server: true } });
    expect(await endOf(bare, await bare.logIn('alice'), '')).toBe('/hub/home');
  });
});

test('the base URL leads to the page that its link names, and never to another site', async () => {
  await using hub = await createServerHub();
  for (const path of ['', 'hub/']) {
    const link = `${path}?next=${encodeURIComponent('/hub/account?a=1')}`;
    const foreignProcess = await fetch(hub.url + link, { redirect: 'manual' });
    expect(foreignProcess.headers.get('location')).toBe('/hub/login?next=%2Fhub%2Faccount%3Fa%3D1');
    const browser = await hub.logIn('alice');
    expect(await endOf(hub, browser, link)).toBe('/hub/account?a=1');
    for (const remote of ['https://evil.example/', '//evil.example', String.raw`\\evil.example`]) {
      const trap = `${path}?next=${encodeURIComponent(remote)}`;
      expect(await endOf(hub, browser, trap)).toBe('/hub/home');
    }
  }
});

test('links for all users lead to the named server of default_server_name', async () => {
  await using hub = await createServerHub({
    Hub: { allow_named_servers: true, default_server_name: 'lab' },
  });
  const browser = await hub.logIn('alice');
  const link = 'hub/user-redirect/tree/a%20b?x=1';
  const next = '/user/alice/lab/tree/a%20b?x=1';
  expect(await endOf(hub, browser, link)).toBe(
    `/hub/spawn/alice/lab?next=${encodeURIComponent(next)}`,
  );
  await startUntilReady(hub, serverPath('alice', 'lab'));
  expect(await endOf(hub, browser, link)).toBe(next);
});

test('default_server_name does nothing where there are no named servers', async () => {
  await using hub = await createServerHub({ Hub: { default_server_name: 'lab' } });
  expect(await endOf(hub, await hub.logIn('alice'), 'hub/user-redirect/x')).toMatch(
    /^\/hub\/spawn\/alice\?/,
  );
});

describe('the page of a stopped server', () => {
  const seconds = 0.2;
  const startsItself = `data-start-seconds="${seconds}"`;

  test('starts it by itself after implicit_spawn_seconds, for its own user only', async () => {
    await using hub = await createServerHub({
      Hub: { implicit_spawn_seconds: seconds },
      Authenticator: { admin_users: ['root'] },
    });
    await createUsers(hub, 'alice');
    const alice = await hub.logIn('alice');
    for (const path of ['user/alice/x', 'hub/spawn']) {
      expect((await alice.open(hub.url + path)).body).toContain(startsItself);
    }
    // Whoever has just stopped it is not surprised.
    expect((await alice.open(`${hub.url}hub/spawn-pending/alice`)).body).not.toContain(
      'data-start-seconds',
    );
    const root = await hub.logIn('root');
    const page = await root.open(`${hub.url}user/alice/x`);
    expect(page.status).toBe(424);
    expect(page.body).not.toContain('data-start-seconds');
  });

  test('does not start it again by itself when it failed', async () => {
    await using hub = await createServerHub({
      Hub: { implicit_spawn_seconds: seconds },
      Spawner: { cmd: fixtureApp('exit-at-once', '4') },
    });
    await createUsers(hub, 'alice');
    await startServer(hub, serverPath('alice'));
    await untilServer(hub, serverPath('alice'), ({ failure }) => failure !== null, 'it has failed');
    const page = await (await hub.logIn('alice')).open(`${hub.url}user/alice/x`);
    expect(page.body).toContain('did not stay up');
    expect(page.body).not.toContain('data-start-seconds');
  });

  test('waits for the button without the setting', async () => {
    await using hub = await createServerHub();
    const page = await (await hub.logIn('alice')).open(`${hub.url}user/alice/x`);
    expect(page.body).not.toContain('data-start-seconds');
  });

  test.runIf(hasChromium())('leads a browser to the page it asked for', async () => {
    await using hub = await createServerHub({
      Hub: { implicit_spawn_seconds: seconds },
      Spawner: { cmd: fixtureApp('plain-web-app'), start_timeout: 300, http_timeout: 300 },
    });
    const browser = await startChromium();
    try {
      const { page, complaints } = await openProfile(browser);
      await page.goto(`${hub.url}hub/login?next=/user/alice/some/page`);
      await page.getByLabel('User name').fill('alice');
      await page.getByLabel('Password', { exact: true }).fill('test');
      await page.getByRole('button', { name: 'Log in' }).click();
      await page.waitForURL('**/user/alice/some/page', { timeout: 60_000 });
      await page.getByText('"url":"/user/alice/some/page"').waitFor();
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
