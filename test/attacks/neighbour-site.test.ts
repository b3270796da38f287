import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { type AttackedHub, startAttackedHub } from './hub-harness.ts';
import { startUpstream } from './proxy-harness.ts';

// The page of an attacker at another port of the same host: cookies know no ports, and SameSite no
// difference. Only what browsers say of the origin keeps the two apart.
let hub: AttackedHub;
let neighbour: Awaited<ReturnType<typeof startUpstream>>;
let chromium: Browser;
let alice: FakeBrowser;

/** A browser that is logged in as alice and looks at the page of the neighbour. */
async function visitNeighbour(): Promise<{ context: BrowserContext; page: Page }> {
  const context = await chromium.newContext();
  await context.addCookies(
    alice.cookieNames().map((name) => ({
      name,
      value: alice.cookie(name)?.value ?? '',
      domain: '127.0.0.1',
      path: alice.cookie(name)?.path ?? '/',
      httpOnly: true,
      sameSite: 'Lax' as const,
    })),
  );
  const page = await context.newPage();
  await page.goto(neighbour.url);
  hub.seen.length = 0;
  return { context, page };
}

describe.skipIf(!hasChromium())('a page of a neighbour, in a real browser', () => {
  beforeAll(async () => {
    hub = await startAttackedHub();
    alice = await hub.visitor('alice');
    neighbour = await startUpstream((_req, res) => {
      res.setHeader('content-type', 'text/html');
      res.end('<!doctype html><title>neighbour</title>');
    });
    chromium = await startChromium();
  });
  afterAll(async () => {
    await chromium.close();
    await neighbour[Symbol.asyncDispose]();
    await hub[Symbol.asyncDispose]();
  });

  test('row 27: opens no WebSocket in the name of its visitor', async () => {
    const { context, page } = await visitNeighbour();
    const outcome = await page.evaluate(
      (url) =>
        new Promise((resolve) => {
          const socket = new WebSocket(url);
          socket.onopen = () => resolve('open');
          socket.onerror = () => resolve('refused');
        }),
      `${hub.url.replace('http', 'ws')}services/guarded/socket`,
    );
    expect(outcome).toBe('refused');
    expect(hub.seen).toEqual([]);
    await context.close();
  });

  test('row 21: changes nothing in the name of its visitor, by script or by form', async () => {
    const { context, page } = await visitNeighbour();
    await page.evaluate(
      async ([guarded, tokens]) => {
        for (const mode of ['no-cors', 'cors'] as const) {
          for (const url of [guarded ?? '', tokens ?? '']) {
            await fetch(url, { method: 'POST', mode, credentials: 'include', body: 'a=b' }).catch(
              () => undefined,
            );
          }
        }
      },
      [`${hub.url}services/guarded/change`, `${hub.url}hub/api/users/alice/tokens`],
    );
    await page.setContent(
      `<form method="post" action="${hub.url}services/guarded/change"><button>Win</button></form>`,
    );
    await Promise.all([page.waitForURL('**/change'), page.click('button')]);
    expect(hub.seen).toEqual([]);
    const tokens = await hub.hub.api('/users/alice/tokens', 'admin-service-token');
    expect(JSON.stringify(await tokens.json())).not.toContain('Requested via');
    await context.close();
  });

  test('row 22: makes its visitor no other user by a cookie of the hub, and locks no user out', async () => {
    const mallory = await hub.visitor('mallory');
    const planted = {
      login: mallory.cookie('hub-hub-login')?.value ?? '',
      app: mallory.cookie('service-guarded')?.value ?? '',
    };
    const { context, page } = await visitNeighbour();
    await page.addScriptTag({
      content: `
        document.cookie = 'hub-hub-login=${planted.login}; path=/hub/home';
        for (let index = 0; index < 12; index += 1)
          document.cookie = 'hub-hub-login=noise' + index + '; path=/hub' + '/'.repeat(index % 2);
        document.cookie = 'service-guarded=${planted.app}; path=/services/guarded/x';
      `,
    });
    const home = await page.goto(`${hub.url}hub/home`);
    expect(await home?.text()).toContain('alice');
    expect(await home?.text()).not.toContain('mallory');
    hub.seen.length = 0;
    await page.goto(`${hub.url}services/guarded/x`);
    expect(hub.seen.filter(({ headers }) => headers['x-hub-user'] === 'mallory')).toEqual([]);
    await context.close();
  });
});
