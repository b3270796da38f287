import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { createExternalHub, type ExternalHub } from '../support/external-hub.ts';
import { ageLogins } from '../support/login-age.ts';
import { listenForPages, type PageServer } from '../support/page-server.ts';

describe.runIf(hasChromium())('in a real browser, at a real provider', () => {
  let external: ExternalHub;
  let service: PageServer;
  let browser: Browser;

  beforeAll(async () => {
    service = await listenForPages('the page of the service');
    external = await createExternalHub({
      Hub: {
        load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
        services: [{ name: 'notes', url: service.url, access: 'gateway', oauth_no_confirm: false }],
      },
    });
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser?.close();
    await external?.[Symbol.asyncDispose]();
    await service?.[Symbol.asyncDispose]();
  });

  async function signIn(page: Page, name: string): Promise<void> {
    await page.getByPlaceholder('Enter any login').fill(name);
    await page.getByPlaceholder('and password').fill('any password');
    await page.getByRole('button', { name: 'Sign-in' }).click();
  }

  /** What a person does on the provider's own pages. */
  async function passProviderPages(page: Page, name: string): Promise<void> {
    await signIn(page, name);
    await page.getByRole('button', { name: 'Continue' }).click();
  }

  test('a visitor opens a service, logs in at the provider, consents twice and is there', async () => {
    const { page, complaints } = await openProfile(browser);
    await page.goto(`${external.hub.url}services/notes/some/page`);
    expect(new URL(page.url()).origin).toBe(external.provider.issuer);
    await passProviderPages(page, 'alice');
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.getByText('the page of the service').waitFor();
    expect(page.url()).toBe(`${external.hub.url}services/notes/some/page`);
    const cookies = await page.context().cookies(`${external.hub.url}hub/`);
    expect(cookies.find(({ name }) => name === 'hub-hub-login')).toMatchObject({
      path: '/hub/',
      httpOnly: true,
      sameSite: 'Lax',
    });
    expect(cookies.filter(({ name }) => name.startsWith('hub-oauth-state-'))).toEqual([]);

    await page.goto(`${external.hub.url}hub/home`);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(
      'Hello, alice by name',
    );
    await page.getByRole('button', { name: 'Your account' }).click();
    await page.getByRole('button', { name: 'Log out' }).click();
    // By itself, although a form of the hub may end at no other site.
    await page.waitForURL(`${external.provider.issuer}/session/end**`);
    await page.getByRole('button', { name: /sign me out/i }).click();
    await page.waitForURL(`${external.hub.url}hub/logout**`);
    await page.getByText('You are logged out').waitFor();
    await page.goto(`${external.hub.url}services/notes/`);
    expect(new URL(page.url()).origin).toBe(external.provider.issuer);
    expect(complaints.filter((text) => text.includes(external.hub.url))).toEqual([]);
  });

  test('a visitor who denies consent comes back to a page that explains it', async () => {
    const { page } = await openProfile(browser);
    await page.goto(`${external.hub.url}hub/login`);
    await page.getByRole('link', { name: 'Example Login' }).click();
    await page.getByRole('link', { name: /Cancel/ }).click();
    await page.getByRole('heading', { name: 'You did not log in' }).waitFor();
    await page.getByRole('link', { name: 'Try again' }).click();
    await passProviderPages(page, 'bob');
    await page.getByRole('heading', { name: 'Hello, bob' }).waitFor();
  });

  test('a user logs in again before a token is made, and finds what was typed', async () => {
    const { page, complaints } = await openProfile(browser);
    await page.goto(`${external.hub.url}hub/login/with/oidc`);
    await passProviderPages(page, 'carol');
    await page.getByRole('heading', { name: 'Hello, carol' }).waitFor();
    await ageLogins(external.hub);
    await page.goto(`${external.hub.url}hub/token`);
    await page.getByText('New token', { exact: true }).click();
    await page.getByLabel('What is it for?').fill('Nightly report');
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByRole('heading', { name: 'Confirm it’s you' }).waitFor();
    await page.getByRole('button', { name: 'Continue to Example Login' }).click();
    // By itself, although a form of the hub may end at no other site; and the provider asks again.
    await page.waitForURL(`${external.provider.issuer}/**`);
    await signIn(page, 'carol');
    await page.getByRole('heading', { name: 'It’s you' }).waitFor();
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Your new token “Nightly report”').waitFor();
    const answers = complaints.filter((text) => text.includes(external.hub.url));
    expect(answers.filter((text) => !text.includes('403'))).toEqual([]);
  });

  test('a form leads to the provider and back, where that is the only way to log in', async () => {
    await using own = await createExternalHub({ Authenticator: { auto_login: true } });
    const { page, complaints } = await openProfile(browser);
    await page.goto(`${own.hub.url}hub/login`);
    await passProviderPages(page, 'dora');
    await page.getByRole('heading', { name: 'Hello, dora' }).waitFor();
    await page.goto(`${own.hub.url}hub/token`);
    await page.getByText('New token', { exact: true }).click();
    await page.getByLabel('What is it for?').fill('Nightly report');
    const ended = await own.hub.api('/users/dora/sessions', 'admin-service-token', {
      method: 'DELETE',
    });
    expect(ended.ok).toBe(true);
    await page.getByRole('button', { name: 'Create token' }).click();
    await page.getByText('What you typed is here again').waitFor();
    expect(await page.getByLabel('What is it for?').inputValue()).toBe('Nightly report');
    expect(complaints).toEqual([]);
  });

  test('two tabs log in at once', async () => {
    const { page: first } = await openProfile(browser);
    const second = await first.context().newPage();
    await first.goto(`${external.hub.url}hub/login?next=/hub/token`);
    await second.goto(`${external.hub.url}hub/login?next=/hub/sessions`);
    await first.getByRole('link', { name: 'Example Login' }).click();
    await second.getByRole('link', { name: 'Example Login' }).click();
    await passProviderPages(second, 'carol');
    await second.waitForURL('**/hub/account#sessions');
    // What was consented to in the other tab is not asked again.
    await first.getByPlaceholder('Enter any login').fill('carol');
    await first.getByPlaceholder('and password').fill('any password');
    await first.getByRole('button', { name: 'Sign-in' }).click();
    await first.waitForURL('**/hub/account#tokens');
    await second.reload();
    expect(second.url()).toContain('/hub/account#sessions');
  });
});
