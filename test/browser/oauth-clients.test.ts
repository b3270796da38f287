import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addVirtualAuthenticator,
  hasChromium,
  openProfile,
  startChromium,
} from '../support/chromium.ts';
import { changeDatabase } from '../support/hub-database.ts';
import { ageLogins } from '../support/login-age.ts';
import { createOAuthApp, type OAuthApp } from '../support/oauth-app.ts';
import { addPasskey, createPasskeyHub } from '../support/passkey-hub.ts';
import { testPassword } from '../support/password-hub.ts';
import { usersOpenServices } from '../support/services.ts';
import { submitForm, type TestHub } from '../support/test-hub.ts';

describe.runIf(hasChromium())('in Chromium, on the way to a client on another origin', () => {
  let app: OAuthApp;
  let hub: TestHub;
  let browser: Browser;
  /** Each logs in with another one. */
  let recoveryCodes: string[];

  const userNames = ['ada', 'bob', 'carol', 'dave', 'eve', 'fay'] as const;

  beforeAll(async () => {
    app = await createOAuthApp([
      { name: 'host', host: 'app.localhost', noConfirm: true },
      { name: 'port', host: 'localhost', noConfirm: true },
      { name: 'asking', host: 'app.localhost' },
      { name: 'onward', host: 'app.localhost', thenHost: 'third.localhost' },
    ]);
    hub = await createPasskeyHub(userNames, {
      Hub: { load_roles: usersOpenServices, services: app.services },
    });
    app.connect(hub);
    for (const name of userNames) await consent(name);
    const { recoveryCodes: codes } = await addPasskey(hub, await hub.logIn('bob', testPassword));
    recoveryCodes = [...codes];
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
    await app?.[Symbol.asyncDispose]();
  });

  /** Lets the client `asking` have a token of a user, so that it is not asked about again. */
  async function consent(userName: string): Promise<void> {
    const visitor = await hub.logIn(userName, testPassword);
    const page = await visitor.open(app.loginUrl('asking'));
    const decided = await submitForm(visitor, page, { decision: 'allow' });
    const arrived = await visitor.open(decided.headers.location ?? '');
    expect(arrived.body).toContain(`asking: ${userName}`);
  }

  async function typePassword(page: Page, userName: string): Promise<void> {
    await page.getByLabel('User name').fill(userName);
    await page.getByLabel('Password', { exact: true }).fill(testPassword);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
  }

  const passkeyPages = new Map<string, Promise<Page>>();

  /** A browser without a login, on a device that holds a passkey of the user. */
  async function openDeviceOf(userName: string): Promise<Page> {
    const opened =
      passkeyPages.get(userName) ??
      (async () => {
        const { page } = await openProfile(browser);
        await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = undefined');
        await addVirtualAuthenticator(page);
        await page.goto(`${hub.url}hub/login`);
        await typePassword(page, userName);
        await page.getByRole('heading', { name: `Hello, ${userName}` }).waitFor();
        await page.goto(`${hub.url}hub/account`);
        await page.getByLabel('Name of the new passkey').fill('Laptop');
        await page.getByRole('button', { name: 'Add a passkey' }).click();
        await page.getByText('Your passkey is added.').waitFor();
        return page;
      })();
    passkeyPages.set(userName, opened);
    const page = await opened;
    await page.context().clearCookies();
    return page;
  }

  const openBrowser = async (): Promise<Page> => (await openProfile(browser)).page;

  /** Every form of the hub after which a browser goes on to what it wanted. */
  const forms = [
    {
      form: 'the login form',
      userName: 'ada',
      open: openBrowser,
      pass: (page: Page) => typePassword(page, 'ada'),
    },
    {
      form: 'the second factor',
      userName: 'bob',
      open: openBrowser,
      async pass(page: Page) {
        await typePassword(page, 'bob');
        await page.getByRole('link', { name: 'Use a recovery code' }).click();
        await page.getByLabel('Recovery code').fill(recoveryCodes.pop() ?? '');
        await page.getByRole('button', { name: 'Log in', exact: true }).click();
      },
    },
    {
      form: 'a passkey alone',
      userName: 'carol',
      open: () => openDeviceOf('carol'),
      pass: (page: Page) => page.getByRole('button', { name: 'Log in with a passkey' }).click(),
    },
    {
      form: 'a passkey after the password',
      userName: 'dave',
      open: () => openDeviceOf('dave'),
      async pass(page: Page) {
        await typePassword(page, 'dave');
        await page.getByRole('button', { name: 'Use a passkey' }).click();
      },
    },
    {
      form: 'a new password',
      userName: 'eve',
      open: openBrowser,
      endsConsent: true,
      async pass(page: Page) {
        const change = 'update password_credentials set must_change = 1';
        await changeDatabase(hub, (database) =>
          database.exec(`${change} where user_id = (select id from users where name = 'eve')`),
        );
        await page.getByLabel('User name').fill('eve');
        await page.getByLabel('Password', { exact: true }).fill(passwordsOfEve.at(-1) ?? '');
        await page.getByRole('button', { name: 'Log in', exact: true }).click();
        passwordsOfEve.push(`${testPassword} ${passwordsOfEve.length}`);
        await page.getByLabel('New password', { exact: true }).fill(passwordsOfEve.at(-1) ?? '');
        await page.getByLabel('Confirm password').fill(passwordsOfEve.at(-1) ?? '');
        await page.locator('form.fields button.primary').click();
      },
    },
  ];
  const passwordsOfEve = [testPassword];

  const outcomes = [
    { case: 'without consent, on another host', service: 'host', ends: (name: string) => name },
    { case: 'without consent, on another port', service: 'port', ends: (name: string) => name },
    { case: 'with remembered consent', service: 'asking', ends: (name: string) => name },
    {
      case: 'with an error',
      service: 'asking',
      scope: 'nonsense',
      ends: () => 'invalid_scope',
    },
  ];

  async function expectOutcome(page: Page, text: string): Promise<void> {
    await page.locator('#outcome', { hasText: text }).waitFor();
  }

  describe.each(forms)('$form leads there', ({ userName, open, pass, endsConsent }) => {
    test.each(outcomes)('$case', async ({ service, scope, ends }) => {
      const page = await open();
      await page.goto(app.loginUrl(service, scope));
      await pass(page);
      if (endsConsent && service === 'asking' && scope === undefined) {
        await page.getByRole('button', { name: 'Allow' }).click();
      }
      await expectOutcome(page, `${service}: ${ends(userName)}`);
    });
  });

  test.each(outcomes)('a confirmation leads there $case', async ({ service, scope, ends }) => {
    const page = await openBrowser();
    await page.goto(`${hub.url}hub/login`);
    await typePassword(page, 'fay');
    await page.getByRole('heading', { name: 'Hello, fay' }).waitFor();
    await ageLogins(hub);
    const { pathname, search } = new URL(app.authorizeUrl(service, scope));
    await page.goto(`${hub.url}hub/confirm-login?next=${encodeURIComponent(pathname + search)}`);
    await page.getByLabel('Password', { exact: true }).fill(testPassword);
    await page.locator('form.fields button.primary').click();
    await expectOutcome(page, `${service}: ${ends('fay')}`);
  });

  test.each([
    ['Allow', 'ada', 'onward: ada'],
    ['Deny', 'fay', 'onward: access_denied'],
  ])('consent leads to where the client redirects (%s)', async (button, userName, outcome) => {
    const { page, complaints } = await openProfile(browser);
    await page.goto(app.loginUrl('onward'));
    await typePassword(page, userName);
    await page.getByRole('button', { name: button }).click();
    await expectOutcome(page, outcome);
    expect(new URL(page.url()).hostname).toBe('third.localhost');
    expect(complaints).toEqual([]);
  });

  test('a browser without JavaScript arrives, too', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(app.loginUrl('host'));
    await typePassword(page, 'ada');
    await expectOutcome(page, 'host: ada');
  });

  test('the page between stays in no history, and the client learns no address of the hub', async () => {
    const { page } = await openProfile(browser);
    await page.goto(app.loginUrl('host'));
    const historyLength = () => page.evaluate('history.length') as Promise<number>;
    const before = await historyLength();
    await typePassword(page, 'ada');
    await expectOutcome(page, 'host: ada');
    expect(await historyLength()).toBe(before + 1);
    expect(new Set(app.referers)).toEqual(new Set(['']));
    await page.goBack();
    // The page before was the login form, which leads on where there is a login.
    await expectOutcome(page, 'host: ada');
  });
});
