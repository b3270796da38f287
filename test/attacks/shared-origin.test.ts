import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cookiesOf, hasChromium, startChromium } from '../support/chromium.ts';
import { usersOpenServices } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';
import { startUpstream } from './proxy-harness.ts';

// The attacker's page is on the hub's own origin: SameSite, Origin and CORS know no difference. Only what
// browsers say of how a request came about keeps the hub's pages from its scripts.
const pagesOfHub = [
  'token',
  'home',
  'login',
  'account',
  'admin',
  'sessions',
  'nothing',
  'api/oauth2/authorize?client_id=service-asking&response_type=code',
];

const serviceWorker = `
  self.addEventListener('install', () => self.skipWaiting());
  self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
  self.addEventListener('fetch', (event) => {
    if (!event.request.url.includes('/open/by-worker')) return;
    event.respondWith((async () => {
      const tried = [];
      for (const make of [
        () => fetch('/hub/account', { headers: { accept: 'text/html' } }),
        () => fetch(new Request('/hub/account', event.request)),
        () => fetch(new Request('/open/to-hub', { ...event.request, redirect: 'follow' })),
        () => fetch('/open/to-hub', { mode: 'same-origin', redirect: 'follow' }),
      ]) {
        try { tried.push(await (await make()).text()); } catch (error) { tried.push(String(error)); }
      }
      return new Response(tried.join('\\n'), { headers: { 'content-type': 'text/plain' } });
    })());
  });`;

describe.runIf(hasChromium())(
  'a page of an attacker on the origin of the hub, in a real browser',
  () => {
    let hub: TestHub;
    let evil: Awaited<ReturnType<typeof startUpstream>>;
    let chromium: Browser;

    beforeAll(async () => {
      evil = await startUpstream((req, res) => {
        if (req.url?.startsWith('/open/to-hub')) {
          res.writeHead(302, { Location: '/hub/account' }).end();
          return;
        }
        const isScript = req.url?.endsWith('.js') === true;
        // Would join the window of the hub's page that it opens.
        res.setHeader('cross-origin-opener-policy', 'same-origin');
        res.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
        res.end(isScript ? serviceWorker : '<!doctype html><title>lure</title><body>');
      });
      hub = await createTestHub({
        Hub: {
          load_roles: usersOpenServices,
          services: [{ name: 'asking', url: evil.url, api_token: 'asking-service-token' }],
        },
        Authenticator: { admin_users: ['root'] },
        Proxy: { extra_routes: { '/open/': evil.url } },
      });
      chromium = await startChromium();
    });
    afterAll(async () => {
      await chromium.close();
      await evil[Symbol.asyncDispose]();
      await hub[Symbol.asyncDispose]();
    });

    /** A browser that is logged in and was lured to the attacker's page. */
    async function lure(userName: string): Promise<{ context: BrowserContext; page: Page }> {
      const visitor = await hub.logIn(userName);
      const context = await chromium.newContext();
      await context.addCookies(cookiesOf(visitor));
      const page = await context.newPage();
      await page.goto(`${hub.url}open/lure`);
      return { context, page };
    }

    async function tokensOf(userName: string): Promise<string> {
      const answer = await hub.api(`/users/${userName}/tokens`, 'admin-service-token');
      expect(answer.status).toBe(200);
      return await answer.text();
    }

    describe.each(['victim', 'root'])('visited by %s', (userName) => {
      test('reads no page of the hub by script, and makes no token with a form from it', async () => {
        const { context, page } = await lure(userName);
        const loot = await page.evaluate(async (paths) => {
          const found: string[] = [];
          for (const init of [{}, { mode: 'same-origin' }, { mode: 'no-cors' }] as RequestInit[]) {
            for (const path of paths) {
              const answer = await fetch(`/hub/${path}`, {
                ...init,
                headers: { accept: 'text/html' },
                referrer: '/hub/account',
              }).catch(() => undefined);
              found.push((await answer?.text()) ?? '');
            }
          }
          const csrf = /name="_csrf" value="([^"]+)"/.exec(found.join(''))?.[1];
          if (csrf === undefined) return found.join('');
          await fetch('/hub/token', {
            method: 'POST',
            body: new URLSearchParams({ _csrf: csrf, note: 'stolen' }),
          });
          return csrf;
        }, pagesOfHub);
        expect(loot).not.toContain(userName);
        expect(loot).not.toContain('_csrf');
        expect(await tokensOf(userName)).not.toContain('stolen');
        await context.close();
      });

      test('asks nothing of the API with the cookie of its visitor', async () => {
        const { context, page } = await lure(userName);
        const answers = await page.evaluate(async (name) => {
          const found: string[] = [];
          for (const path of ['user', 'users', `users/${name}`, `users/${name}/tokens`, 'info']) {
            const answer = await fetch(`/hub/api/${path}`);
            found.push(`${answer.status} ${await answer.text()}`);
          }
          const made = await fetch(`/hub/api/users/${name}/tokens`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ note: 'stolen' }),
          });
          found.push(`${made.status} ${await made.text()}`);
          return found;
        }, userName);
        expect(answers.filter((answer) => /^20/.test(answer))).toEqual([]);
        expect(await tokensOf(userName)).not.toContain('stolen');
        await context.close();
      });

      test('looks into no frame, embedded object or window of the hub', async () => {
        const { context, page } = await lure(userName);
        const opened = context.waitForEvent('page');
        await page.evaluate(`
        for (const kind of ['iframe', 'object', 'embed']) {
          const element = document.createElement(kind);
          element.setAttribute(kind === 'object' ? 'data' : 'src', '/hub/account');
          document.body.append(element);
        }
        globalThis.popup = globalThis.open('/hub/account');
        undefined;
      `);
        await (await opened).waitForURL('**/hub/account');
        await (await opened).getByText('Log out').first().waitFor({ state: 'attached' });
        const seen: string[] = await page.evaluate(`
        [...Array.from({ length: frames.length }, (_, index) => frames[index]), popup].map((each) => {
          try {
            return each?.document.documentElement.innerHTML ?? '';
          } catch (error) {
            return String(error);
          }
        })
      `);
        expect(seen.join('')).not.toContain('_csrf');
        await context.close();
      });

      test('loads no page of the hub before its visitor asks for it', async () => {
        const { context, page } = await lure(userName);
        const answer = page.waitForResponse((each) => each.url().endsWith('/hub/account'));
        await page.evaluate(`
        const link = document.createElement('link');
        Object.assign(link, { rel: 'prefetch', href: '/hub/account' });
        document.head.append(link);
      `);
        expect((await answer).status()).toBe(403);
        await context.close();
      });

      test('posts a form that the hub takes for no form of its own', async () => {
        const { context, page } = await lure(userName);
        await page.setContent(
          '<form method="post" action="/hub/token"><input name="note" value="stolen"><button>Win</button></form>',
        );
        await Promise.all([page.waitForURL('**/hub/token'), page.click('button')]);
        expect(await tokensOf(userName)).not.toContain('stolen');
        await context.close();
      });

      test('has no form of the hub filled in by one that claims to come from its page', async () => {
        const { context, page } = await lure(userName);
        await page.evaluate("history.replaceState(null, '', '/hub/account')");
        await page.setContent(
          '<form method="post" action="/hub/token"><input name="note" value="stolen"><input name="_csrf" value="made.up"><button>Win</button></form>',
        );
        const [answer] = await Promise.all([page.waitForNavigation(), page.click('button')]);
        expect(answer?.status()).toBe(403);
        expect(await page.content()).not.toContain('stolen');
        await context.close();
      });

      test('reads nothing of the hub by a service worker', async () => {
        const { context, page } = await lure(userName);
        await page.evaluate(
          "navigator.serviceWorker.register('/open/worker.js').then(() => navigator.serviceWorker.ready.then(() => 0))",
        );
        await page.goto(`${hub.url}open/by-worker`);
        const seen = (await page.textContent('body')) ?? '';
        expect(seen).not.toBe('');
        expect(seen).not.toContain('_csrf');
        expect(seen).not.toContain(userName);
        await context.close();
      });
    });
  },
);
