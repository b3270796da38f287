import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { cookiesOf, hasChromium, startChromium } from '../support/chromium.ts';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  serverPath,
  startUntilReady,
  submitFormTo,
  tokenOf,
} from '../support/server-hub.ts';
import { submitLogin, type TestHub, until } from '../support/test-hub.ts';
import { startUpstream } from './proxy-harness.ts';

// The attacker's server asks no visitor who they are: its guard was replaced. Only the hub's own door keeps its
// pages from browsers that have no business there.

const navigation = {
  accept: 'text/html,application/xhtml+xml',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
};
const script = {
  accept: '*/*',
  'sec-fetch-mode': 'cors',
  'sec-fetch-dest': 'empty',
  'sec-fetch-site': 'same-origin',
};

let hub: TestHub;
let evilUrl: string;
/** A page on the hub's origin on which the attacker has a script. */
let neighbour: Awaited<ReturnType<typeof startUpstream>>;
let pageNumber = 0;

beforeAll(async () => {
  neighbour = await startUpstream((_req, res) => {
    res.setHeader('content-type', 'text/html');
    res.end('<!doctype html><title>neighbour</title><body>');
  });
  hub = await createServerHub({
    Hub: {
      load_groups: [{ name: 'friends', users: ['friend'] }],
      load_roles: [
        { name: 'friends', scopes: ['access:servers!server=evil/'], groups: ['friends'] },
      ],
    },
    Authenticator: { admin_users: ['root'] },
    Spawner: { access: 'server', cmd: fixtureApp('hostile-server') },
    Proxy: { extra_routes: { '/open/': neighbour.url } },
  });
  await createUsers(hub, 'evil', 'bystander');
  await startUntilReady(hub, serverPath('evil'));
  await startUntilReady(hub, serverPath('bystander'));
  evilUrl = `${hub.url}user/evil/`;
});
afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  await neighbour[Symbol.asyncDispose]();
});

/** A page of the attacker's server that no other test asks for. */
function newPage(): string {
  pageNumber += 1;
  return `${evilUrl}lure-${pageNumber}`;
}

async function seenBy(userName: string): Promise<string> {
  return await readFile(join(hub.directory, 'homes', userName, 'seen'), 'utf8');
}

/** Headers of the requests for a page that the attacker's server got. */
async function requestsFor(url: string): Promise<Record<string, string>[]> {
  const lines = (await seenBy('evil')).trim().split('\n');
  return lines
    .map((line) => JSON.parse(line) as { url: string; headers: Record<string, string> })
    .filter((request) => request.url.startsWith(new URL(url).pathname))
    .map(({ headers }) => headers);
}

/** Whether the attacker's server got any request of a visitor for a page. */
async function hasSeen(url: string): Promise<boolean> {
  const requests = await requestsFor(url);
  return requests.some((headers) => headers['user-agent'] !== 'hub');
}

/** One request exactly as given; nothing is followed. */
async function ask(
  url: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<{ status: number; location: string | undefined; body: string }> {
  const outgoing = request(url, { method, headers }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { statusCode: status = 0, headers: answered } = response;
  return { status, location: answered.location, body: await text(response) };
}

const asVisitor = (browser: FakeBrowser, url: string, headers: Record<string, string>) => ({
  ...headers,
  cookie: browser.cookieHeader(url),
});

/** Status of the refusal, or 101 for a WebSocket that opens. */
async function handshake(url: string, headers: Record<string, string>): Promise<number> {
  const socket = new WebSocket(url.replace('http', 'ws'), { headers });
  const opened = once(socket, 'open').then(() => 101);
  const refused = once(socket, 'unexpected-response').then(([outgoing, response]) => {
    (outgoing as ClientRequest).destroy();
    return (response as IncomingMessage).statusCode ?? 0;
  });
  refused.catch(() => undefined);
  opened.catch(() => undefined);
  const status = await Promise.race([opened, refused]);
  socket.on('error', () => undefined);
  socket.terminate();
  return status;
}

const fromBrowser = () => ({ origin: new URL(hub.url).origin });

/** Opens the attacker's page as someone who is asked first; answers with the question. */
async function questionFor(browser: FakeBrowser, url: string): Promise<BrowserAnswer> {
  const answer = await browser.open(url);
  expect(new URL(answer.url).pathname).toBe('/hub/open-server');
  expect(answer.status).toBe(200);
  return answer;
}

describe('a server whose guard was replaced by its user sees no request of', () => {
  test('a browser without a login, which is sent to log in', async () => {
    const url = newPage();
    const answer = await ask(`${url}?a=1`, {
      ...navigation,
      cookie: 'a=1',
      'user-agent': 'visitor',
    });
    expect([answer.status, answer.location]).toEqual([
      302,
      `/hub/login?next=${encodeURIComponent(`${new URL(url).pathname}?a=1`)}`,
    ]);
    // The hub asked it how to log in, and told it no more than the page.
    const host = new URL(url).host;
    expect(await requestsFor(url)).toEqual([
      {
        accept: 'text/html',
        connection: 'keep-alive',
        host,
        'sec-fetch-mode': 'navigate',
        'user-agent': 'hub',
        'x-forwarded-host': host,
        'x-forwarded-proto': 'http',
      },
    ]);
  });

  test.each([
    'https://elsewhere.test/',
    '//elsewhere.test/hub/api/oauth2/authorize?client_id=hub-user-evil',
    '/user/evil/lure-again',
    '/hub/login',
    '/hub/api/oauth2/authorize',
    '/hub/api/oauth2/authorize?client_id=hub-user-bystander',
    '/hub/api/oauth2/authorize?client_id=hub-user-evil&client_id=hub-user-bystander',
    '/hub/api/oauth2/authorize/../../token?client_id=hub-user-evil',
  ])('a browser without a login, which it cannot send to %s', async (location) => {
    const query = new URLSearchParams({ location, cookie: 'hub-user-evil-oauth-state=x' });
    const outgoing = request(`${newPage()}?${query}`, { headers: navigation }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(response.headers.location).toMatch(/^\/hub\/login\?next=/);
    expect(response.headers['set-cookie']).toBeUndefined();
    response.resume();
  });

  test('a browser without a login, which gets of its answer what begins a login and no more', async () => {
    const location = '/hub/api/oauth2/authorize?client_id=hub-user-evil&state=s#fragment';
    const query = new URLSearchParams({ location });
    for (const cookie of [
      'hub-user-evil-oauth-state-1=x; Path=/; Domain=elsewhere.test',
      'hub-user-evil=token; Path=/user/evil/',
      'hub-session-id=planted; Path=/',
      'hub-user-bystander-oauth-state=x; Path=/user/bystander/',
      'own=1; Path=/user/evil/',
      `hub-user-evil-oauth-state-2=${'x'.repeat(5_000)}`,
    ]) {
      query.append('cookie', cookie);
    }
    const outgoing = request(`${newPage()}?${query}`, { headers: navigation }).end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    expect(new URL(response.headers.location ?? '', hub.url).searchParams.get('client_id')).toBe(
      'hub-user-evil',
    );
    expect(response.headers['set-cookie']).toEqual([
      'hub-user-evil-oauth-state-1=x; Path=/user/evil/',
    ]);
    expect(await text(response)).toBe('');
  });

  test.each([
    ['a fetch', script, 'GET', 401],
    ['an image', { ...script, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }, 'GET', 401],
    ['a form', { ...navigation, origin: 'https://elsewhere.test' }, 'POST', 401],
    ['a fetch of another page', { origin: 'https://elsewhere.test' }, 'GET', 302],
    ['a browser of plain http', { accept: 'text/html' }, 'POST', 401],
    ['a script in the address of Basic', { ...script, authorization: 'Basic YTpi' }, 'GET', 401],
    ['a token nobody knows', { ...script, authorization: 'token unknown' }, 'GET', 401],
  ])('a browser without a login, by %s', async (_name, headers, method, status) => {
    const url = newPage();
    expect((await ask(url, headers, method)).status).toBe(status);
    expect(await hasSeen(url)).toBe(false);
  });

  test('a browser without a login, by a WebSocket', async () => {
    const url = newPage();
    expect(await handshake(url, fromBrowser())).toBe(401);
    expect(await hasSeen(url)).toBe(false);
  });

  test.each([
    ['a window', navigation],
    ['a frame', { ...navigation, 'sec-fetch-dest': 'iframe' }],
    ['a fetch', script],
    ['a page loaded ahead', { ...navigation, 'sec-purpose': 'prefetch;prerender' }],
    ['a browser of plain http', { accept: 'text/html' }],
    ['a program that has the cookies', { accept: '*/*' }],
    ['a fetch with a token of its own making', { ...script, authorization: 'token unknown' }],
  ])('a user without the right, by %s', async (_name, headers) => {
    const victim = await hub.logIn('victim');
    const url = newPage();
    const answer = await ask(url, asVisitor(victim, url, headers));
    expect(answer.status).toBe(403);
    expect(answer.body).not.toContain('attacker');
    expect(await hasSeen(url)).toBe(false);
  });

  test('a user without the right, by a WebSocket', async () => {
    const victim = await hub.logIn('victim');
    const url = newPage();
    expect(await handshake(url, asVisitor(victim, url, fromBrowser()))).toBe(403);
    expect(await hasSeen(url)).toBe(false);
  });

  test.each([
    ['root', 'an administrator'],
    ['friend', 'a user it is shared with'],
  ])('%s, %s, before the question is answered', async (userName) => {
    const visitor = await hub.logIn(userName);
    const url = newPage();
    const question = await questionFor(visitor, url);
    expect(question.body).toContain('evil');
    const refusals = [
      (await ask(url, asVisitor(visitor, url, script))).status,
      (await ask(url, asVisitor(visitor, url, { ...navigation, origin: 'null' }), 'POST')).status,
      await handshake(url, asVisitor(visitor, url, fromBrowser())),
    ];
    expect(refusals).toEqual([403, 403, 403]);
    expect(await hasSeen(url)).toBe(false);
  });

  test('an administrator whose answer was for another server, or in another login', async () => {
    const root = await hub.logIn('root');
    const remote = `${hub.url}user/bystander/`;
    const opened = await submitFormTo(root, await questionFor(root, remote), /open-server/);
    expect(opened.status).toBe(303);
    const url = newPage();
    await questionFor(root, url);

    // The same answer, moved to the attacker's server; and the attacker's, kept for the next login.
    const moved = root.cookie('hub-open-server')?.value ?? '';
    expect(moved).not.toBe('');
    const cookie = `${root.cookieHeader(url)}; hub-open-server=${moved}`;
    expect((await ask(url, { ...navigation, cookie })).status).toBe(302);

    await submitFormTo(root, await questionFor(root, url), /open-server/);
    expect((await ask(url, asVisitor(root, url, navigation))).status).toBe(200);
    const another = await hub.logIn('root');
    const answers = root
      .cookieHeader(url)
      .split('; ')
      .filter((pair) => pair.startsWith('hub-open-server='));
    const later = newPage();
    const old = `${another.cookieHeader(later)}; ${answers.join('; ')}`;
    expect((await ask(later, { ...navigation, cookie: old })).status).toBe(302);
    expect(await hasSeen(later)).toBe(false);
  });

  test('anyone who follows a link with a token of the attacker', async () => {
    const token = await tokenOf(hub, 'evil');
    const [victim, root] = [await hub.logIn('victim'), await hub.logIn('root')];
    for (const site of ['none', 'cross-site', 'same-site', 'same-origin', undefined]) {
      const url = newPage();
      const { 'sec-fetch-site': _, ...rest } = navigation;
      const headers = site === undefined ? rest : { ...rest, 'sec-fetch-site': site };
      const link = `${url}?token=${token}`;
      await ask(link, headers);
      await ask(link, { accept: 'text/html' });
      await ask(link, asVisitor(victim, url, headers));
      await ask(link, asVisitor(victim, url, headers), 'POST');
      await ask(link, asVisitor(root, url, headers));
      await ask(link, { ...headers, 'sec-fetch-dest': 'iframe' });
      expect(await hasSeen(url)).toBe(false);
    }
  });

  test('a browser in which a page has planted the session id of the attacker', async () => {
    const [victim, evil] = [await hub.logIn('victim'), await hub.logIn('evil')];
    const url = newPage();
    const planted = `hub-session-id=${evil.cookie('hub-session-id')?.value}`;
    const own = victim.cookieHeader(url);
    for (const cookie of [`${planted}; ${own}`, `${own}; ${planted}`]) {
      expect((await ask(url, { ...navigation, cookie })).status).toBe(403);
      expect(await handshake(url, { ...fromBrowser(), cookie })).toBe(403);
    }
    const flood = Array.from({ length: 20 }, (_, index) => `hub-session-id=${index}`).join('; ');
    expect((await ask(url, { ...navigation, cookie: `${flood}; ${planted}` })).status).toBe(403);
    expect(await hasSeen(url)).toBe(false);
  });

  test('a browser in which a neighbour of the host has planted the session id of the attacker', async () => {
    await using https = await createServerHub({
      Hub: { public_url: 'https://hub.example.org/' },
      Spawner: { access: 'server', cmd: fixtureApp('hostile-server') },
    });
    const { port } = https.hub.publicServer.address() as AddressInfo;
    const local = { ...https, url: `http://127.0.0.1:${port}/` };
    await createUsers(https, 'evil');
    await startUntilReady(https, serverPath('evil'));
    const evil = new FakeBrowser();
    await submitLogin(evil, local.url, 'evil', 'test');
    const id = evil.cookie('hub-session-id')?.value;
    expect(evil.cookie('__Host-hub-session-id')).toMatchObject({ value: id, path: '/' });
    const url = `${local.url}user/evil/lure`;
    // A neighbour plants cookies for its whole domain, but none whose name begins with __Host-.
    const planted = await ask(url, { ...navigation, cookie: `hub-session-id=${id}` });
    expect(planted.status).toBe(302);
    const own = await ask(url, { ...navigation, cookie: `__Host-hub-session-id=${id}` });
    expect(own.status).toBe(200);
    const home = await evil.open(`${local.url}hub/home`);
    await submitFormTo(evil, home, /logout/);
    expect(evil.cookieNames().filter((name) => name.includes('session-id'))).toEqual([]);
  });

  test('a program with the token of someone without the right, which stays secret', async () => {
    const token = await tokenOf(hub, 'victim');
    const url = newPage();
    const headers = { authorization: `token ${token}`, accept: 'application/json' };
    expect((await ask(url, headers)).status).toBe(403);
    expect((await ask(`${url}?token=${token}`, { accept: 'application/json' })).status).toBe(403);
    expect(await hasSeen(url)).toBe(false);
  });
});

describe('the door lets in', () => {
  test('the owner, with no step more', async () => {
    const evil = await hub.logIn('evil');
    const url = newPage();
    expect((await ask(url, asVisitor(evil, url, navigation))).status).toBe(200);
    expect((await ask(url, asVisitor(evil, url, script))).status).toBe(200);
    expect(await handshake(url, asVisitor(evil, url, fromBrowser()))).toBe(101);
    // What another hub of the same host calls a session changes nothing.
    const cookie = `hub-session-id=${'x'.repeat(32)}; ${evil.cookieHeader(url)}`;
    expect((await ask(url, { ...navigation, cookie })).status).toBe(200);
  });

  test('the owner, and shows the server no token of another user that a link brought', async () => {
    const evil = await hub.logIn('evil');
    const [own, foreign] = [await tokenOf(hub, 'evil'), await tokenOf(hub, 'root')];
    const url = newPage();
    const answer = await ask(`${url}?a=1&token=${foreign}`, asVisitor(evil, url, navigation));
    expect([answer.status, answer.location]).toEqual([302, `${new URL(url).pathname}?a=1`]);
    expect(await hasSeen(url)).toBe(false);
    for (const token of [own, 'token-of-the-app-itself']) {
      const kept = await ask(`${url}?token=${token}`, asVisitor(evil, url, navigation));
      expect(kept.status).toBe(200);
    }
  });

  test.each(['root', 'friend'])('%s, who is asked once for each login and server', async (name) => {
    const visitor = await hub.logIn(name);
    const url = newPage();
    const question = await questionFor(visitor, `${url}?a=1`);
    const answer = await submitFormTo(visitor, question, /open-server/);
    expect([answer.status, answer.headers.location]).toEqual([303, `${new URL(url).pathname}?a=1`]);
    expect((await visitor.request(`${url}?a=1`)).status).toBe(200);
    expect((await ask(url, asVisitor(visitor, url, script))).status).toBe(200);
    expect(await handshake(url, asVisitor(visitor, url, fromBrowser()))).toBe(101);
    expect(await seenBy('evil')).not.toContain('hub-open-server');
    // The question is over: its address leads on.
    expect((await visitor.request(question.url)).headers.location).toBe(
      `${new URL(url).pathname}?a=1`,
    );
  });

  test('programs with a token of someone who may, in a header or the address', async () => {
    for (const token of [await tokenOf(hub, 'evil'), await tokenOf(hub, 'root'), adminToken]) {
      const url = newPage();
      const authorization = `token ${token}`;
      expect((await ask(url, { authorization })).status).toBe(200);
      expect((await ask(`${url}?token=${token}`, { accept: '*/*' })).status).toBe(200);
      expect(await handshake(`${url}?token=${token}`, fromBrowser())).toBe(101);
      expect(await handshake(url, { authorization })).toBe(101);
    }
  });

  test('programs that show nothing, and preflights: the server refuses them itself', async () => {
    const url = newPage();
    expect((await ask(url, { accept: 'application/json' })).status).toBe(200);
    expect((await ask(url, { authorization: 'token of-the-app-itself' })).status).toBe(200);
    const preflight = { origin: 'https://elsewhere.test', 'access-control-request-method': 'GET' };
    expect((await ask(url, preflight, 'OPTIONS')).status).toBe(200);
  });

  test('a WebSocket only as long as the right lasts', async () => {
    const cases = [
      async () => {
        const evil = await hub.logIn('evil');
        const cookie = evil.cookieHeader(evilUrl);
        return {
          cookie,
          end: async () => submitFormTo(evil, await evil.open(`${hub.url}hub/home`), /logout/),
        };
      },
      async () => {
        const friend = await hub.logIn('friend');
        const answer = await submitFormTo(
          friend,
          await questionFor(friend, evilUrl),
          /open-server/,
        );
        expect(answer.status).toBe(303);
        return {
          cookie: friend.cookieHeader(evilUrl),
          end: () =>
            hub.api('/groups/friends/users', adminToken, {
              method: 'DELETE',
              body: JSON.stringify({ users: ['friend'] }),
            }),
        };
      },
    ];
    for (const prepare of cases) {
      const { cookie, end } = await prepare();
      const socket = new WebSocket(`${newPage().replace('http', 'ws')}`, {
        headers: { ...fromBrowser(), cookie },
      });
      await once(socket, 'open');
      await end();
      await until(() => socket.readyState === WebSocket.CLOSED, 'the WebSocket is closed');
      const after = newPage();
      expect((await ask(after, { ...script, cookie })).status).toBeGreaterThanOrEqual(401);
      expect(await hasSeen(after)).toBe(false);
    }
  });
});

describe.runIf(hasChromium())('in a real browser', () => {
  let chromium: Browser;
  beforeAll(async () => {
    chromium = await startChromium();
  });
  afterAll(async () => chromium.close());

  /** A browser profile with the cookies of a login; without a name, of none. */
  async function profile(
    userName: string | undefined,
    options: BrowserContextOptions = {},
  ): Promise<BrowserContext> {
    const context = await chromium.newContext(options);
    if (userName === undefined) return context;
    const visitor = await hub.logIn(userName);
    await context.addCookies(cookiesOf(visitor));
    return context;
  }

  test.each([undefined, 'victim', 'root'])(
    'a page on the hub’s origin brings %s to the server in no way',
    async (userName) => {
      const context = await profile(userName);
      const page = await context.newPage();
      await page.goto(`${hub.url}open/`);
      const url = newPage();
      const path = new URL(url).pathname;
      const opened = context.waitForEvent('page');
      await page.evaluate(`(async () => {
        const add = (name, attributes) =>
          document.body.append(Object.assign(document.createElement(name), attributes));
        add('iframe', { src: '${path}' });
        add('object', { data: '${path}' });
        add('embed', { src: '${path}' });
        add('img', { src: '${path}' });
        add('script', { src: '${path}' });
        add('link', { rel: 'prefetch', href: '${path}' });
        add('script', {
          type: 'speculationrules',
          text: JSON.stringify({ prefetch: [{ urls: ['${path}'] }], prerender: [{ urls: ['${path}'] }] }),
        });
        navigator.sendBeacon('${path}', 'x');
        await fetch('${path}').catch(() => 0);
        await fetch('${path}', { method: 'POST', body: 'x', headers: { authorization: 'token x' } });
        await new Promise((resolve) => {
          new WebSocket('${path}').onerror = resolve;
        });
        await navigator.serviceWorker.register('${path}').catch(() => 0);
        await new Promise((resolve) => {
          new Worker('${path}').onerror = resolve;
        });
        globalThis.popup = globalThis.open('${path}');
      })()`);
      const popup = await opened;
      await popup.waitForLoadState();
      expect(await popup.content()).not.toContain('a page of the attacker');
      const seen = await page.evaluate(
        "(() => { try { return popup.document.documentElement.innerHTML } catch (error) { return '' } })()",
      );
      expect(seen).toBe('');
      const asked = await page.evaluate(
        `fetch('/hub/open-server?next=${encodeURIComponent(path)}').then((answer) => answer.text())`,
      );
      expect(asked).not.toContain('_csrf');
      expect(await hasSeen(url)).toBe(false);
      await context.close();
    },
  );

  test.each([
    ['light', 1_000, 'evil'],
    ['dark', 360, 'evil'],
    ['dark', 360, 'e'.repeat(100)],
  ] as const)(
    'the question is answered by keyboard, without scripts (%s, %i px, server of %s)',
    async (colorScheme, width, ownerName) => {
      if (ownerName !== 'evil') {
        await createUsers(hub, ownerName);
        await startUntilReady(hub, serverPath(ownerName));
      }
      const context = await profile('root', {
        colorScheme,
        javaScriptEnabled: false,
        viewport: { width, height: 700 },
      });
      const page = await context.newPage();
      const url = `${hub.url}user/${ownerName}/lure`;
      await page.goto(url);
      await page.getByRole('heading', { name: `Open the server of ${ownerName}?` }).waitFor();
      await page.getByRole('button', { name: 'Open server' }).focus();
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Tab');
      const overflow = 'document.documentElement.scrollWidth - innerWidth';
      expect(await page.evaluate(overflow)).toBeLessThanOrEqual(0);
      await page.keyboard.press('Enter');
      await page.getByText('a page of the attacker').waitFor();
      expect(page.url()).toBe(url);
      await context.close();
    },
  );
});
