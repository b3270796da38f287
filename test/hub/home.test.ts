import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { csrfOf } from '../support/passkey-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import { createTestHub, submitLogin, type TestHub, until } from '../support/test-hub.ts';

const serviceCount = 500;
let hub: TestHub;
let tools: Server;
beforeAll(async () => {
  tools = createServer((_req, res) => res.end('ok'));
  await new Promise<void>((resolve) => tools.listen(0, '127.0.0.1', resolve));
  const { port } = tools.address() as AddressInfo;
  const description = 'What the people of this group work with every day. '.repeat(4);
  hub = await createTestHub({
    Hub: {
      allow_named_servers: true,
      load_roles: [...usersOpenServices, { name: 'admins', scopes: ['admin:services'] }],
      services: Array.from({ length: serviceCount }, (_, index) => ({
        name: `tool-${String(index).padStart(3, '0')}-of-a-longer-name`,
        url: `http://127.0.0.1:${port}`,
        info: {
          title:
            index === 7
              ? { en: 'Tool number 7 of many', de: 'Werkzeug Nummer 7' }
              : `Tool number ${index} of many`,
          description: index === 7 ? { en: description, de: 'Für jeden Tag.' } : description,
          group: `Group ${index % 20}`,
          icon: `/services/tool-${index}/icon.png`,
        },
      })),
    },
    Authenticator: { admin_users: ['root'] },
    Spawner: {
      cmd: [process.execPath, '-e', 'setInterval(() => {}, 1000)'],
      profiles: [
        {
          name: 'small',
          display_name: { en: 'Small', de: 'Klein' },
          description: { en: 'Two cores.', de: 'Zwei Kerne.' },
          default: true,
        },
        { name: 'large', description: 'All cores.' },
      ],
    },
  });
});
afterAll(async () => {
  await hub?.[Symbol.asyncDispose]();
  tools.close();
});

describe('with 500 services', () => {
  /** KiB of a page with its stylesheet and scripts. */
  async function weightOf(browser: FakeBrowser, path: string): Promise<number> {
    const { status, body } = await browser.request(hub.url + path);
    expect(status).toBe(200);
    let bytes = Buffer.byteLength(body);
    for (const [, asset = ''] of body.matchAll(/(?:src|href)="(\/hub\/static\/[^"]+)"/g)) {
      bytes += Buffer.byteLength((await browser.request(new URL(asset, hub.url).href)).body);
    }
    return bytes / 1024;
  }

  test('what the operator wrote of them, and of kinds of servers, is in the language of its reader', async () => {
    const browser = await hub.logIn('alice');
    const german = { headers: { 'accept-language': 'de' } };
    const found = await browser.request(`${hub.url}hub/services?search=WERKZEUG`, german);
    expect(found.body).toContain('>Werkzeug Nummer 7</a><p>Für jeden Tag.</p>');
    expect(found.body).not.toContain('Tool number');
    expect((await browser.open(`${hub.url}hub/services?search=werkzeug`)).body).not.toContain(
      'tool-',
    );
    const options = await browser.request(`${hub.url}hub/spawn`, german);
    expect(options.body).toContain('<strong>Klein</strong><span>Zwei Kerne.</span>');
    expect((await browser.open(`${hub.url}hub/spawn`)).body).toContain('<strong>Small</strong>');
  });

  test('no page that lists them is heavy', async () => {
    const root = await hub.logIn('root');
    for (const path of ['hub/home', 'hub/services', 'hub/services?before=', 'hub/admin/services']) {
      expect(await weightOf(root, path), path).toBeLessThanOrEqual(100);
    }
  });

  test('they are found by pages, by group and by a search without JavaScript', async () => {
    const alice = await hub.logIn('alice');
    const open = (path: string) => alice.request(`${hub.url}hub/${path}`);
    const titles = ({ body }: { readonly body: string }) =>
      [...body.matchAll(/Tool number (\d+) of many<\/a>/g)].map(([, number]) => Number(number));
    const home = await open('home');
    expect(home.body).toContain('<form class="inline-form" method="get" action="/hub/services"');
    expect(home.body).toContain('<a href="/hub/services">All 500 services</a>');
    const first = await open('services');
    expect(titles(first)).toHaveLength(24);
    expect(first.body).toContain('24 of 500');
    const next = /href="([^"]+)" rel="next"/.exec(first.body)?.[1]?.replaceAll('&amp;', '&');
    expect(next).toBe('/hub/services?after=0.0.460%2Ctool-460-of-a-longer-name');
    const last = await open('services?before=');
    expect(titles(last)).toHaveLength(24);
    expect(last.body).not.toContain('rel="next"');
    expect(titles(await open('services?search=NUMBER+49'))).toEqual([
      49, 490, 491, 492, 493, 494, 495, 496, 497, 498, 499,
    ]);
    const group = await open('services?group=Group+3&search=number+4');
    expect(titles(group)).toEqual([43, 403, 423, 443, 463, 483]);
    expect((await open('services?search=%3Cb%3E')).body).toContain('matches “&lt;b&gt;”');
  });

  test('a favourite stands first for its user alone, and only what may be opened can be one', async () => {
    const dora = await hub.logIn('dora');
    const found = await dora.open(`${hub.url}hub/services?search=number+300+of`);
    const name = 'tool-300-of-a-longer-name';
    expect(found.body).toContain(`name="mark" value="${name}"`);
    await submitTo(dora, found, '/hub/services/favourite', { mark: name });
    const home = await dora.open(`${hub.url}hub/home`);
    expect(home.body).toMatch(/>Favourites<[^§]*data-key="tool-300-/);
    const eve = await hub.logIn('eve');
    expect((await eve.open(`${hub.url}hub/home`)).body).not.toContain('Favourites');
    const none = await submitTo(dora, home, '/hub/services/favourite', { mark: 'nothing' });
    expect(none.status).toBe(404);
    await submitTo(dora, home, '/hub/services/favourite', { unmark: name });
    expect((await dora.open(`${hub.url}hub/home`)).body).not.toContain('Favourites');
  });

  test('home says when and from where the login before was', async () => {
    const first = await hub.logIn('frida');
    expect((await first.open(`${hub.url}hub/home`)).body).not.toContain('last login');
    const second = await hub.logIn('frida');
    expect((await second.open(`${hub.url}hub/home`)).body).toMatch(
      /last login: <time.*127\.0\.0\.1\./,
    );
  });

  test('the administration filters them by state, with counts', async () => {
    const root = await hub.logIn('root');
    const open = async (query: string) =>
      (await root.request(`${hub.url}hub/admin/services${query}`)).body;
    await until(
      async () => (await open('?search=tool')).includes('Ready <b>500</b>'),
      'all are ready',
    );
    const all = await open('?search=tool');
    expect(all).toContain('href="/hub/admin/services?search=tool&amp;show=unhealthy"');
    expect(all).toContain('25 of 500');
    const next = /href="[^"]*services([^"]+)" rel="next"/.exec(all)?.[1]?.replaceAll('&amp;', '&');
    expect(next).toMatch(/^\?search=tool&after=\d+%2Ctool-024-of-a-longer-name$/);
    const second = await open(next ?? '');
    expect(second).toContain('tool-025-of-a-longer-name');
    const none = await open('?show=unhealthy');
    expect(none).toContain('Not answering <b>0</b>');
    expect(none).toContain('There are no such services now.');
  });
});

describe('the theme', () => {
  test('is chosen in the menu under the name, and counts on every page, after logging out too', async () => {
    const alice = await hub.logIn('alice');
    const services = await alice.request(`${hub.url}hub/services?search=a`);
    expect(services.body).toContain('<html lang="en" dir="ltr">');
    const chosen = await submitTo(alice, services, '/hub/preferences', { theme: 'dark' });
    expect(chosen).toMatchObject({
      status: 303,
      headers: { location: '/hub/services?search=a' },
    });
    const [cookie = ''] = chosen.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(
      /^hub-preferences=theme=dark; Path=\/; Max-Age=31536000; Expires=[^;]+; HttpOnly; SameSite=Lax$/,
    );
    const home = await alice.request(`${hub.url}hub/home`);
    expect(home.body).toContain('<html lang="en" dir="ltr" data-theme="dark">');
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

describe('a form that is sent when the login has ended', () => {
  /** More than a cookie holds, however it is packed. */
  const manyNames = Array.from({ length: 900 }, () => randomUUID()).join('\n');
  const ownForms = [
    ['hub/admin/new-users', 'hub/admin/new-users', { people: 'eve\nfay' }, '>eve\nfay</textarea>'],
    [
      'hub/admin/new-users',
      'hub/admin/new-users',
      { people: manyNames },
      `${manyNames.slice(-60)}</textarea>`,
    ],
    ['hub/admin/groups', 'hub/admin/groups', { name: 'night "shift"' }, 'night &quot;shift&quot;'],
    ['hub/admin/announcements', 'hub/admin/announcements', { text: 'Cake <at> 3' }, '>Cake &lt;at'],
    [
      'hub/admin/new-role',
      'hub/admin/new-role',
      { name: 'tutor', description: 'Helps.' },
      'Helps.',
    ],
    ['hub/admin/new-service', 'hub/admin/new-service', { title: 'Wiki of all' }, 'Wiki of all'],
    ['hub/account', 'hub/account/profile', { display_name: 'Root R.' }, 'Root R.'],
    ['hub/share/root', 'hub/share/root', { name: 'carol' }, 'value="carol"'],
    ['hub/spawn/root', 'hub/spawn/root', { profile: 'large' }, 'value="large" checked'],
    ['hub/home', 'hub/create-server', { name: 'my thesis' }, 'value="my thesis"'],
    [
      'hub/account',
      'hub/token',
      { scope: 'access:services!service=far' },
      'value="access:services!service=far"',
    ],
  ] as const;

  test.for(ownForms)('of %s keeps what was typed, done is nothing', async (own) => {
    const [path, action, typed, shown] = own;
    const root = await hub.logIn('root');
    const page = await root.request(hub.url + path);
    expect(page.body).not.toContain(shown);
    const form = new RegExp(`action="(/${action}[^"]*)"`).exec(page.body)?.[1] ?? '';
    root.setCookie('hub-hub-login', '', '/hub/');
    const sent = await submitTo(root, page, form, typed);
    expect([sent.status, sent.headers.location]).toEqual([
      303,
      `/hub/login?next=${encodeURIComponent(`/${path}`)}`,
    ]);
    const login = await root.request(`${hub.url}hub/login?next=/${path}`);
    await submitMain(root, login, { username: 'root', password: 'test' });
    const again = await root.request(hub.url + path);
    expect(again.body).toContain(shown);
    expect(again.body).toContain('What you typed is here again');
    expect((await root.request(hub.url + path)).body).not.toContain(shown);
  });

  test('and a form from before a login in another window are filled in again', async () => {
    const root = await hub.logIn('root');
    const page = await root.request(`${hub.url}hub/admin/groups`);
    const login = await hub.logIn('root');
    root.setCookie('hub-hub-login', login.cookie('hub-hub-login')?.value ?? '', '/hub/');
    root.setCookie('hub-session-id', login.cookie('hub-session-id')?.value ?? '', '/');
    const sent = await submitTo(root, page, '/hub/admin/groups', { name: 'late shift' });
    expect([sent.status, sent.headers.location]).toEqual([303, '/hub/admin/groups']);
    const again = await root.follow(sent);
    expect(again.body).toContain('value="late shift"');
    const done = await submitTo(root, again, '/hub/admin/groups', { name: 'late shift' });
    expect((await root.follow(done)).body).toContain('The group late shift is made.');
  });

  test('of one user is filled in for no other, whose browser was given the cookie', async () => {
    const carol = await hub.logIn('carol');
    const page = await carol.request(`${hub.url}hub/account`);
    carol.setCookie('hub-hub-login', '', '/hub/');
    const typed = { display_name: 'Typed by carol' };
    await submitTo(carol, page, '/hub/account/profile', typed);
    const kept = carol.cookie('hub-saved-input')?.value ?? '';
    expect(kept).not.toBe('');
    const shownTo = async (name: string) => {
      const browser = await hub.logIn(name);
      browser.setCookie('hub-saved-input', kept, '/hub/');
      return (await browser.request(`${hub.url}hub/account`)).body;
    };
    expect(await shownTo('carol')).toContain(typed.display_name);
    const root = await shownTo('root');
    expect(root).not.toContain(typed.display_name);
    expect(root).not.toContain('What you typed is here again');
  });

  test('that no page of the hub has shown to its user is not kept', async () => {
    const [carol, root] = [await hub.logIn('carol'), await hub.logIn('root')];
    const ofCarol = await carol.request(`${hub.url}hub/account`);
    for (const token of ['', 'made-up', 'made.up', csrfOf(ofCarol)]) {
      const sent = await root.request(`${hub.url}hub/account/profile`, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          referer: `${hub.url}hub/account`,
        },
        body: new URLSearchParams({ display_name: 'stolen', _csrf: token }).toString(),
      });
      expect([token, sent.status]).toEqual([token, 403]);
    }
  });

  test('from another site, from nowhere, or one too long, is not kept', async () => {
    const _csrf = csrfOf(await (await hub.logIn('root')).request(`${hub.url}hub/home`));
    const send = (headers: Record<string, string>, people = 'eve') =>
      new FakeBrowser().request(`${hub.url}hub/admin/new-users`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body: new URLSearchParams({ people, _csrf }).toString(),
      });
    const referer = `${hub.url}hub/admin/new-users`;
    expect((await send({ referer })).status).toBe(303);
    expect((await send({})).status).toBe(403);
    expect((await send({ referer: 'https://example.org/hub/home' })).status).toBe(403);
    expect((await send({ referer, 'sec-fetch-site': 'same-site' })).status).toBe(403);
    const random = Array.from({ length: 900 }, () => Math.random().toString(36)).join('\n');
    // Only who had a login, whose form it was, stores it.
    expect((await send({ referer }, random)).status).toBe(403);
    const root = await hub.logIn('root');
    const page = await root.request(referer);
    root.setCookie('hub-hub-login', '', '/hub/');
    const endless = { people: Array.from({ length: 2000 }, () => randomUUID()).join('\n') };
    expect((await submitTo(root, page, '/hub/admin/new-users', endless)).status).toBe(403);
  });

  test('to another site, or with a body of none, leads nowhere', async () => {
    const browser = new FakeBrowser();
    const post = (body: string, type = 'application/x-www-form-urlencoded') =>
      browser.request(`${hub.url}hub/spawn/carol`, {
        method: 'POST',
        headers: { 'content-type': type, referer: `${hub.url}hub/spawn/carol` },
        body,
      });
    expect((await post('{}', 'application/json')).status).toBe(415);
    const _csrf = csrfOf(await (await hub.logIn('carol')).request(`${hub.url}hub/spawn/carol`));
    const odd = await post(`next=https%3A%2F%2Fexample.org&profile=%22%3E&_csrf=${_csrf}`);
    expect(odd.headers.location).toBe('/hub/login?next=%2Fhub%2Fspawn%2Fcarol');
  });
});
