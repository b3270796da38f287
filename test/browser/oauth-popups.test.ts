import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { createExternalHub, type ExternalHub } from '../support/external-hub.ts';
import { createOAuthApp, type OAuthApp } from '../support/oauth-app.ts';
import { addPasskey, createPasskeyHub } from '../support/passkey-hub.ts';
import { testPassword } from '../support/password-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import type { TestHub } from '../support/test-hub.ts';

describe.runIf(hasChromium())('a popup in Chromium', () => {
  let app: OAuthApp;
  let hub: TestHub;
  let external: ExternalHub;
  let externalApp: OAuthApp;
  let browser: Browser;
  let recoveryCodes: string[];

  beforeAll(async () => {
    const clients = [
      { name: 'inside', noConfirm: true },
      { name: 'inside-asking' },
      { name: 'outside', host: 'app.localhost', noConfirm: true },
      { name: 'outside-asking', host: 'app.localhost' },
    ];
    app = await createOAuthApp(clients);
    externalApp = await createOAuthApp(clients);
    // At `localhost`, where browsers mind the policy without TLS.
    hub = await createPasskeyHub(['ada', 'bob'], {
      Hub: { load_roles: usersOpenServices, services: app.services },
    });
    app.connect(hub);
    external = await createExternalHub({
      Hub: { load_roles: usersOpenServices, services: externalApp.services },
    });
    externalApp.connect(external.hub);
    const passkey = await addPasskey(hub, await hub.logIn('bob', testPassword));
    recoveryCodes = [...passkey.recoveryCodes];
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser?.close();
    for (const each of [external, hub, externalApp, app]) await each?.[Symbol.asyncDispose]();
  });

  /** Opens a popup from a page of an app. */
  async function openPopup(page: Page, opener: string): Promise<Page> {
    await page.goto(opener);
    const opened = page.waitForEvent('popup');
    await page.getByRole('button', { name: 'Open' }).click();
    return opened;
  }

  async function logIn(page: Page, userName: string, password = testPassword): Promise<void> {
    await page.getByLabel('User name').fill(userName);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
  }

  async function openLoggedIn(userName: string): Promise<Page> {
    const { page } = await openProfile(browser);
    await page.goto(`${hub.url}hub/login`);
    await logIn(page, userName);
    await page.getByRole('heading', { name: `Hello, ${userName}` }).waitFor();
    return page;
  }

  const receives = (page: Page, outcome: string) =>
    page.getByText(`${outcome}, closed: false`).waitFor();

  describe.each(['inside', 'outside'])('of a client %s the origin of the hub', (service) => {
    const openerUrl = (client = service, scope?: string) =>
      app.openerUrl(client, app.authorizeUrl(client, scope));

    test('tells its opener who has logged in', async () => {
      const { page } = await openProfile(browser);
      const popup = await openPopup(page, openerUrl());
      await logIn(popup, 'ada');
      await receives(page, `${service}: ada`);
      expect(await popup.title()).toBe('opener: true');
    });

    test('tells it after mistakes, a second factor and consent', async () => {
      const { page } = await openProfile(browser);
      const client = `${service}-asking`;
      const popup = await openPopup(page, openerUrl(client));
      await logIn(popup, 'bob', 'not the password');
      await popup.getByText('Incorrect username or password.').waitFor();
      await logIn(popup, 'bob');
      await popup.getByRole('link', { name: 'Use a recovery code' }).click();
      for (const code of ['not a code', recoveryCodes.pop() ?? '']) {
        await popup.getByLabel('Recovery code').fill(code);
        await popup.getByRole('button', { name: 'Log in', exact: true }).click();
        if (code === 'not a code') await popup.getByText('This code is wrong').waitFor();
      }
      await popup.getByRole('button', { name: 'Deny' }).click();
      await receives(page, `${client}: access_denied`);
    });

    test('tells it with a login that is there', async () => {
      const page = await openLoggedIn('ada');
      await openPopup(page, openerUrl());
      await receives(page, `${service}: ada`);
    });

    test('tells it of an error', async () => {
      const page = await openLoggedIn('ada');
      await openPopup(page, openerUrl(service, 'nonsense'));
      await receives(page, `${service}: invalid_scope`);
    });

    test.each([
      'hub/home',
      'hub/login?next=%2Fhub%2Ftoken',
      'hub/token?next=%2Fhub%2Fapi%2Foauth2%2Fauthorize',
    ])('is cut off where it shows /%s', async (path) => {
      const page = await openLoggedIn('ada');
      await expectCutOff(page, app.openerUrl(service, hub.url + path));
    });

    test('is cut off where it logs in for another page', async () => {
      const { page } = await openProfile(browser);
      await expectCutOff(page, app.openerUrl(service, `${hub.url}hub/login?next=%2Fhub%2Ftoken`));
    });
  });

  async function expectCutOff(page: Page, opener: string): Promise<void> {
    const popup = await openPopup(page, opener);
    await popup.waitForLoadState();
    expect(await popup.evaluate('window.opener')).toBeNull();
    expect(await page.evaluate('window.popup.closed')).toBe(true);
  }

  test('comes back from a login elsewhere', async () => {
    const { page } = await openProfile(browser);
    const opens = externalApp.authorizeUrl('outside');
    const popup = await openPopup(page, externalApp.openerUrl('outside', opens));
    await popup.getByPlaceholder('Enter any login').fill('carol');
    await popup.getByPlaceholder('and password').fill('any password');
    await popup.getByRole('button', { name: 'Sign-in' }).click();
    await popup.getByRole('button', { name: 'Continue' }).click();
    await receives(page, 'outside: carol');
  });
});
