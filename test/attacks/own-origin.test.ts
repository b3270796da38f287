import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { requires } from '../support/requires.ts';
import {
  adminToken,
  createUsers,
  fixtureApp,
  serverPath,
  startUntilReady,
} from '../support/server-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import { createTlsSubdomainHub, originBelow } from '../support/subdomain-hub.ts';
import type { TestHub } from '../support/test-hub.ts';
import { startUpstream } from './proxy-harness.ts';

// With Hub.subdomain_host the attacker's page is on an origin of its own, but on the same site as the hub:
// SameSite and the Domain of cookies know no difference.
const pagesOfHub = [
  'token',
  'home',
  'account',
  'admin',
  'sessions',
  'api/user',
  'api/users',
  'api/info',
];

const serviceWorker = `
  self.addEventListener('install', () => self.skipWaiting());
  self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
  self.addEventListener('fetch', (event) => {
    if (!event.request.url.includes('/by-worker')) return;
    const target = new URL(event.request.url).searchParams.get('target');
    event.respondWith((async () => {
      const tried = [];
      for (const init of [{}, { mode: 'no-cors' }, { mode: 'cors', redirect: 'manual' }]) {
        try {
          tried.push(await (await fetch(target, { credentials: 'include', ...init })).text());
        } catch (error) { tried.push(String(error)); }
      }
      return new Response('tried ' + tried.join(), { headers: { 'content-type': 'text/plain' } });
    })());
  });`;

describe.runIf(requires('chromium', 'openssl'))(
  'a page of an attacker on an origin of its own, in a real browser',
  () => {
    let hub: TestHub;
    let evil: Awaited<ReturnType<typeof startUpstream>>;
    let wiki: Awaited<ReturnType<typeof startUpstream>>;
    let chromium: Browser;
    let mallory: FakeBrowser;
    let context: BrowserContext;
    let page: Page;
    /** What the wiki was told to change, and by whom. */
    let changes: string[] = [];
    /** Whom the wiki served. */
    let visitors: (string | undefined)[] = [];
    let wikiUrl: string;
    let evilUrl: string;
    let victimUrl: string;

    beforeAll(async () => {
      evil = await startUpstream((req, res) => {
        const isScript = req.url?.endsWith('.js') === true;
        res.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
        // Confined by the gateway; what a page sets itself is not.
        res.setHeader(
          'set-cookie',
          'hub-hub-login=by-header; Domain=hub.localhost; Path=/hub/; Secure',
        );
        res.end(isScript ? serviceWorker : '<!doctype html><title>lure</title><body>');
      });
      wiki = await startUpstream((req, res) => {
        const user = String(req.headers['x-hub-user']);
        visitors.push(user);
        if (req.method !== 'GET') changes.push(user);
        res.end(`secret notes of ${user}`);
      });
      hub = await createTlsSubdomainHub({
        Hub: {
          load_roles: usersOpenServices,
          services: [
            { name: 'evil', url: evil.url, access: 'public' },
            { name: 'wiki', url: wiki.url, access: 'gateway', api_token: 'token-of-the-wiki' },
          ],
        },
        Authenticator: { admin_users: ['root'] },
        Spawner: { access: 'gateway', cmd: fixtureApp('web-server') },
      });
      wikiUrl = `${originBelow(hub, 'wiki--service')}/services/wiki/`;
      evilUrl = `${originBelow(hub, 'evil--service')}/services/evil/`;
      victimUrl = `${originBelow(hub, 'victim')}/user/victim/`;
      visitors = [];
      await createUsers(hub, 'victim');
      await startUntilReady(hub, serverPath('victim'));
      mallory = await hub.logIn('mallory');
      await mallory.open(wikiUrl);
      chromium = await startChromium({ acceptsEveryCertificate: true });
    });
    afterAll(async () => {
      await chromium?.close();
      await hub?.[Symbol.asyncDispose]();
      await wiki?.[Symbol.asyncDispose]();
      await evil?.[Symbol.asyncDispose]();
    });
    beforeEach(() => {
      changes = [];
      visitors = [];
    });

    /** A browser whose user is logged in, has used the wiki and a server, and was lured to the attacker's page. */
    async function lure(userName: string): Promise<void> {
      context = await chromium.newContext();
      page = await context.newPage();
      await page.goto(`${hub.url}hub/login`);
      await page.fill('[name=username]', userName);
      await page.fill('[name=password]', 'test');
      await page.press('[name=password]', 'Enter');
      await page.waitForURL(`${hub.url}hub/home`);
      await page.goto(wikiUrl);
      expect(await page.textContent('body')).toContain(`secret notes of ${userName}`);
      if (userName === 'victim') await page.goto(victimUrl);
      await page.goto(`${evilUrl}lure`);
      visitors = [];
    }

    /** Runs a function of the attacker's page, given as its text, with data. */
    function attack(script: string, data: unknown): Promise<unknown> {
      return page.evaluate(`(${script})(${JSON.stringify(data)})`);
    }

    /** The secrets of the attacker's own logins, to be planted. */
    function ownCookies(...names: string[]): (readonly [name: string, value: string])[] {
      const own = names.map(
        (name) => [name, mallory.cookie(`__Host-${name}`)?.value ?? ''] as const,
      );
      expect(own.map(([, value]) => value)).not.toContain('');
      return own;
    }

    async function tokensOf(userName: string): Promise<string> {
      const answer = await hub.api(`/users/${userName}/tokens`, adminToken);
      expect(answer.status).toBe(200);
      return await answer.text();
    }

    /** What the pages of the hub and of the wiki say who is logged in. */
    async function whoAmI(): Promise<{ readonly home: string; readonly wiki: string }> {
      await page.goto(`${hub.url}hub/home`);
      const home = (await page.textContent('body')) ?? '';
      await page.goto(wikiUrl);
      return { home, wiki: (await page.textContent('body')) ?? '' };
    }

    test('both sides know who the visitor is before anything is tried', async () => {
      await lure('victim');
      const { home, wiki: notes } = await whoAmI();
      expect(home).toContain('victim');
      expect(notes).toContain('secret notes of victim');
      const names = (await context.cookies()).map(({ name }) => name);
      expect(names).toContain('__Host-hub-hub-login');
      expect(names).toContain('__Host-service-wiki');
      expect(names.filter((name) => /^(hub-|service-)/.test(name))).toEqual([]);
      await context.close();
    });

    describe.each(['victim', 'root'])('visited by %s', (userName) => {
      test('reads nothing of the hub, a service or another user by script', async () => {
        await lure(userName);
        const targets = [...pagesOfHub.map((path) => `${hub.url}hub/${path}`), wikiUrl, victimUrl];
        const loot = await page.evaluate(async (urls) => {
          const found: string[] = [];
          for (const mode of ['cors', 'no-cors'] as const) {
            for (const url of urls) {
              const answer = await fetch(url, { mode, credentials: 'include' }).catch(
                () => undefined,
              );
              found.push(`${(await answer?.text()) ?? ''}`);
            }
          }
          return found.join('');
        }, targets);
        expect(loot).toBe('');
        await context.close();
      });

      test('changes nothing by script or by form', async () => {
        await lure(userName);
        const targets = [
          `${hub.url}hub/token`,
          `${hub.url}hub/api/users/${userName}/tokens`,
          `${hub.url}hub/api/users/victim/server`,
          `${hub.url}hub/logout`,
          `${wikiUrl}change`,
          `${victimUrl}change`,
        ];
        const script = `async (urls) => {
        for (const url of urls) {
          for (const method of ['POST', 'DELETE', 'PUT']) {
            for (const mode of ['cors', 'no-cors']) {
              const body = method === 'POST' ? 'note=stolen' : null;
              await fetch(url, { method, mode, credentials: 'include', body }).catch(() => 0);
            }
          }
          navigator.sendBeacon(url, 'note=stolen');
        }
      }`;
        await attack(script, targets);
        for (const url of targets) {
          await page.goto(`${evilUrl}lure`);
          await page.setContent(
            `<form method="post" action="${url}"><input name="note" value="stolen"><button>Win</button></form>`,
          );
          await Promise.all([page.waitForURL(url), page.click('button')]);
        }
        expect(await tokensOf(userName)).not.toContain('stolen');
        expect(changes).toEqual([]);
        const { home } = await whoAmI();
        expect(home).toContain(userName);
        await context.close();
      });

      test('looks into no frame and no window', async () => {
        await lure(userName);
        const opened = context.waitForEvent('page');
        const script = `([token, notes]) => {
        for (const url of [token, notes]) {
          const frame = document.createElement('iframe');
          frame.src = url;
          document.body.append(frame);
        }
        globalThis.popup = globalThis.open(token);
      }`;
        await attack(script, [`${hub.url}hub/account`, wikiUrl]);
        const popup = await opened;
        await popup.waitForURL('**/hub/account');
        await popup.getByText('Log out').first().waitFor({ state: 'attached' });
        const seen: string[] = await page.evaluate(`
        [frames[0], frames[1], popup].map((each) => {
          try {
            return 'seen ' + (each?.document.documentElement.innerHTML ?? '');
          } catch (error) {
            return error.name;
          }
        })
      `);
        expect(seen.slice(0, 2)).toEqual(['SecurityError', 'SecurityError']);
        // The hub's page has left the group of windows of the page that opened it.
        expect(['SecurityError', 'seen ']).toContain(seen[2]);
        await context.close();
      });

      test('gets no service worker between the visitor and another origin', async () => {
        await lure(userName);
        await page.evaluate(
          `navigator.serviceWorker.register('/services/evil/worker.js').then(() => navigator.serviceWorker.ready.then(() => 0))`,
        );
        for (const target of [`${hub.url}hub/account`, wikiUrl]) {
          await page.goto(`${evilUrl}by-worker?target=${encodeURIComponent(target)}`);
          const seen = (await page.textContent('body')) ?? '';
          expect(seen).toMatch(/^tried /);
          expect(seen).not.toMatch(/_csrf|secret notes/);
        }
        const { home, wiki: notes } = await whoAmI();
        expect(home + notes).not.toContain('tried');
        await context.close();
      });

      test('makes its visitor no other user by cookies of the attacker', async () => {
        await lure(userName);
        const script = `(cookies) => {
        for (const [name, value] of cookies)
          for (const prefix of ['', '__Host-', '__host-', '__Secure-'])
            for (const path of ['/', '/hub/', '/hub/home', '/services/wiki/'])
              for (const domain of ['; Domain=hub.localhost', ''])
                document.cookie = prefix + name + '=' + value + '; Path=' + path + domain + '; Secure';
      }`;
        await attack(
          script,
          ownCookies('hub-hub-login', 'hub-session-id', 'hub-known-browser', 'service-wiki'),
        );
        const { home, wiki: notes } = await whoAmI();
        expect(home).toContain(userName);
        expect(notes).toContain(`secret notes of ${userName}`);
        expect(visitors).not.toContain('mallory');
        await context.close();
      });
    });

    test('logs no visitor in as the attacker, by form or by cookie', async () => {
      await lure('victim');
      await context.clearCookies();
      await page.goto(`${evilUrl}lure`);
      const script = `([[name, value]]) => {
      document.cookie = name + '=' + value + '; Path=/hub/; Domain=hub.localhost; Secure';
    }`;
      await attack(script, ownCookies('hub-hub-login'));
      await page.goto(`${hub.url}hub/home`);
      expect(new URL(page.url()).pathname).toBe('/hub/login');
      await page.goto(`${evilUrl}lure`);
      await page.setContent(
        `<form method="post" action="${hub.url}hub/login"><input name="username" value="mallory"><input name="password" value="test"><button>Win</button></form>`,
      );
      await Promise.all([page.waitForURL('**/hub/login'), page.click('button')]);
      await page.goto(`${hub.url}hub/home`);
      expect(new URL(page.url()).pathname).toBe('/hub/login');
      await context.close();
    });

    test('that overflows the cookie jar logs its visitor out at most', async () => {
      await lure('victim');
      const script = `(cookies) => {
      const plant = (name, value) => {
        document.cookie = name + '=' + value + '; Domain=hub.localhost; Path=/; Secure';
      };
      for (let index = 0; index < 400; index += 1) plant('noise' + index, 'x');
      for (const [name, value] of cookies) plant(name, value);
    }`;
      await attack(script, ownCookies('hub-hub-login', 'service-wiki'));
      const { home, wiki: notes } = await whoAmI();
      expect(home + notes).not.toContain('mallory');
      expect(visitors).not.toContain('mallory');
      await context.close();
    });

    test('opens no WebSocket to another origin in the name of its visitor', async () => {
      await lure('victim');
      const outcomes = await page.evaluate(
        (urls) =>
          Promise.all(
            urls.map(
              (url) =>
                new Promise((resolve) => {
                  const socket = new WebSocket(url);
                  socket.onopen = () => resolve('open');
                  socket.onerror = () => resolve('refused');
                }),
            ),
          ),
        [wikiUrl, victimUrl].map((url) => url.replace('https', 'wss')),
      );
      expect(outcomes).toEqual(['refused', 'refused']);
      await context.close();
    });
  },
);
