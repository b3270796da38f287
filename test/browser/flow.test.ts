import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { managedService, untilState, usersOpenServices } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

describe.runIf(hasChromium())('in Chromium', () => {
  let hub: TestHub;
  let browser: Browser;
  let whoami: string;

  beforeAll(async () => {
    hub = await createTestHub({
      Hub: {
        load_roles: usersOpenServices,
        services: [
          await managedService('whoami', 'examples/whoami/whoami.ts'),
          await managedService('plain-app', 'examples/plain-app/plain-app.ts', {
            access: 'gateway',
            oauth_no_confirm: false,
          }),
        ],
      },
    });
    whoami = `${hub.url}services/whoami/`;
    await untilState(hub, 'whoami', 'ready');
    await untilState(hub, 'plain-app', 'ready');
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser.close();
    await hub[Symbol.asyncDispose]();
  });

  interface Visit extends AsyncDisposable {
    readonly context: BrowserContext;
    readonly page: Page;
    /** What the browser complained about: policy violations, scripts that failed, missing files. */
    readonly complaints: string[];
  }

  async function visit(options: { readonly javaScriptEnabled?: boolean } = {}): Promise<Visit> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    return { context, page, complaints, [Symbol.asyncDispose]: () => context.close() };
  }

  async function logIn(page: Page, userName: string): Promise<void> {
    await page.getByLabel('User name').fill(userName);
    await page.getByLabel('Password', { exact: true }).fill('test');
    await page.getByRole('button', { name: /log in|sign in/i }).click();
  }

  async function logOut(page: Page): Promise<void> {
    await page.getByRole('button', { name: /your account$/ }).click();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'You are logged out' }).waitFor();
  }

  test('a person opens a service, logs in, allows it, and lands on its page', async () => {
    await using visiting = await visit();
    const { page, complaints } = visiting;
    await page.goto(`${whoami}?from=mail`);
    expect(new URL(page.url()).pathname).toBe('/hub/login');
    await logIn(page, 'ada');
    await page.getByRole('heading', { name: 'Allow whoami?' }).waitFor();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'Hello, ada' }).waitFor();
    expect(page.url()).toBe(`${whoami}?from=mail`);
    await page.reload();
    await page.getByRole('heading', { name: 'Hello, ada' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('Deny leads to a page that says so, and not into the service', async () => {
    await using visiting = await visit();
    const { page } = visiting;
    await page.goto(`${hub.url}services/plain-app/`);
    await logIn(page, 'bea');
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByText('was not granted').waitFor();
    expect(await page.content()).not.toContain('Hello, bea');
  });

  test('logout ends the service too, in every tab', async () => {
    await using visiting = await visit();
    const { page, context } = visiting;
    await page.goto(whoami);
    await logIn(page, 'cleo');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'Hello, cleo' }).waitFor();
    const second = await context.newPage();
    await second.goto(`${hub.url}hub/home`);
    await logOut(second);
    await page.reload();
    expect(new URL(page.url()).pathname).toBe('/hub/login');
  });

  test('everything works with the keyboard alone', async () => {
    await using visiting = await visit();
    const { page, complaints } = visiting;
    await page.goto(whoami);
    // The first field has the focus as soon as the page is drawn.
    await page.locator('input[name=username]:focus').waitFor();
    await page.keyboard.type('dot');
    await page.keyboard.press('Tab');
    await page.keyboard.type('test');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Allow whoami?' }).waitFor();
    for (let presses = 0; presses < 20; presses += 1) {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate('document.activeElement?.textContent');
      if (focused === 'Allow') break;
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Hello, dot' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('everything works without JavaScript', async () => {
    await using visiting = await visit({ javaScriptEnabled: false });
    const { page } = visiting;
    await page.goto(whoami);
    await logIn(page, 'eda');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByRole('heading', { name: 'Hello, eda' }).waitFor();
    await page.goto(`${hub.url}hub/home`);
    await logOut(page);
  });

  test('no page of a person makes the browser complain', async () => {
    await using visiting = await visit();
    const { page, complaints } = visiting;
    await page.goto(`${hub.url}hub/login`);
    await logIn(page, 'fay');
    await page.waitForURL(/hub\/home/);
    for (const path of ['hub/home', 'hub/token', 'hub/sessions']) {
      const answer = await page.goto(`${hub.url}${path}`);
      expect(answer?.status(), path).toBe(200);
      await page.waitForLoadState('networkidle');
    }
    expect(complaints).toEqual([]);
  });
});
