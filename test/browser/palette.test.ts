import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { createServerHub, fixtureApp } from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

describe.runIf(hasChromium())('the search in a real browser', () => {
  let hub: TestHub;
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    hub = await createServerHub({ Spawner: { cmd: fixtureApp('web-server') } });
    browser = await startChromium();
    ({ page } = await openProfile(browser));
    await page.goto(`${hub.url}hub/login`);
    await page.getByLabel('User name').fill('alice');
    await page.getByLabel('Password', { exact: true }).fill('test');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL('**/hub/home');
  });
  afterAll(async () => {
    await browser.close();
    await hub[Symbol.asyncDispose]();
  });

  test('opens by a key, completes as one types, and goes where the chosen result leads', async () => {
    await page.keyboard.press('/');
    const field = page.getByRole('combobox', { name: 'Type a name or an action' });
    await page.getByRole('option').first().waitFor();
    await field.fill('s');
    await page.getByRole('option', { name: 'Sessions' }).waitFor();
    await page.evaluate(axe.source);
    const { violations } = await page.evaluate(() =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(),
    );
    expect(violations.map(({ id }) => id)).toEqual([]);
    await field.fill('to');
    await page.getByRole('option', { name: 'Services' }).waitFor({ state: 'detached' });
    const chosen = page.getByRole('option', { name: 'Tokens', selected: true });
    await chosen.waitFor();
    expect(await field.getAttribute('aria-activedescendant')).toBe(await chosen.getAttribute('id'));
    await page.keyboard.press('Enter');
    await page.waitForURL('**/hub/account#tokens');
  });

  test('opens by Control K and by its button on a phone, moves by arrows, and closes by Escape', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await page.keyboard.press('Control+k');
    const options = page.getByRole('listbox', { name: 'Search' }).getByRole('option');
    await options.nth(1).waitFor();
    await page.keyboard.press('ArrowUp');
    expect(await options.last().getAttribute('aria-selected')).toBe('true');
    await page.keyboard.press('ArrowDown');
    expect(await options.first().getAttribute('aria-selected')).toBe('true');
    await page.keyboard.press('Escape');
    await options.first().waitFor({ state: 'hidden' });
    await page.getByRole('link', { name: 'Search' }).click();
    const field = page.getByRole('combobox', { name: 'Type a name or an action' });
    await field.fill('§§§');
    await page.getByText('Nothing found.').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL('**/hub/search?search=*');
  });

  test('a page that follows a server says once what became of it', async () => {
    await page.goto(`${hub.url}hub/home`);
    await page.getByRole('button', { name: 'Start' }).click();
    await page.waitForURL('**/user/alice/**');
    await page.goto(`${hub.url}hub/home`);
    await page.getByText('Running').waitFor();
    const other = await page.context().newPage();
    await other.goto(`${hub.url}hub/home`);
    await other.getByRole('button', { name: 'Stop' }).click();
    await other.getByText('Stopped').first().waitFor();
    await other.close();
    // What a page that comes back into view does at once.
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    await page.getByRole('status').filter({ hasText: 'Your server: Stopped' }).waitFor();
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  });
});
