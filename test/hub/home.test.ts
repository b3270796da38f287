import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { createTestHub, submitLogin, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createTestHub();
});
afterAll(() => hub?.[Symbol.asyncDispose]());

describe('the theme', () => {
  test('is chosen in the menu under the name, and counts on every page, after logging out too', async () => {
    const alice = await hub.logIn('alice');
    const services = await alice.request(`${hub.url}hub/services?search=a&page=1`);
    expect(services.body).toContain('<html lang="en">');
    const chosen = await submitTo(alice, services, '/hub/preferences', { theme: 'dark' });
    expect(chosen).toMatchObject({
      status: 303,
      headers: { location: '/hub/services?search=a&page=1' },
    });
    const [cookie = ''] = chosen.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(
      /^hub-preferences=theme=dark; Path=\/; Max-Age=31536000; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
    );
    const home = await alice.request(`${hub.url}hub/home`);
    expect(home.body).toContain('<html lang="en" data-theme="dark">');
    expect(home.body).toContain('<meta name="color-scheme" content="dark">');
    expect(home.body).toContain('value="dark" aria-pressed="true"');

    await submitTo(alice, home, '/hub/logout');
    for (const path of ['hub/login', 'hub/error/503', 'hub/nowhere', 'nowhere', '/%zz']) {
      expect((await alice.request(hub.url + path)).body, path).toContain(' data-theme="dark"');
    }
  });

  test('of the system leaves nothing behind', async () => {
    const alice = await hub.logIn('alice');
    const home = await alice.request(`${hub.url}hub/home`);
    await submitTo(alice, home, '/hub/preferences', { theme: 'light' });
    const answer = await submitTo(alice, home, '/hub/preferences', { theme: 'system' });
    expect(answer.headers['set-cookie']?.[0]).toContain('hub-preferences=; Path=/; Max-Age=0;');
    expect((await alice.request(`${hub.url}hub/home`)).body).not.toContain('data-theme');
  });

  test('is chosen by no other site, and leads to none', async () => {
    const alice = await hub.logIn('alice');
    const post = (body: string) =>
      alice.request(`${hub.url}hub/preferences`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body,
      });
    expect((await post('theme=dark')).status).toBe(403);
    const home = await alice.request(`${hub.url}hub/home`);
    const away = { theme: 'dark', return_to: 'https://example.org/' };
    const answer = await submitTo(alice, home, '/hub/preferences', away);
    expect(answer.headers.location).toBe('/hub/home');
    const odd = await submitTo(alice, home, '/hub/preferences', { theme: 'pink' });
    expect(odd.status).toBe(400);
    expect(odd.body).toContain('The themes are system, light, dark.');
  });

  test('is kept from before a login, too', async () => {
    const browser = new FakeBrowser();
    const login = await browser.request(`${hub.url}hub/login`);
    const csrf = /name="_csrf" value="([^"]*)"/.exec(login.body)?.[1] ?? '';
    const answer = await browser.request(`${hub.url}hub/preferences`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ _csrf: csrf, theme: 'dark' }).toString(),
    });
    expect(answer.status).toBe(303);
    await submitLogin(browser, hub.url, 'bob', 'test');
    expect((await browser.request(`${hub.url}hub/home`)).body).toContain('data-theme="dark"');
  });
});
