import axe from 'axe-core';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addVirtualAuthenticator,
  hasChromium,
  openProfile,
  startChromium,
} from '../support/chromium.ts';
import { ageLogins } from '../support/login-age.ts';
import { createPasskeyHub } from '../support/passkey-hub.ts';
import { testPassword } from '../support/password-hub.ts';
import type { TestHub } from '../support/test-hub.ts';

describe.runIf(hasChromium())('in a real browser, with an authenticator of its own', () => {
  let hub: TestHub;
  let browser: Browser;

  beforeAll(async () => {
    hub = await createPasskeyHub(['ada', 'bob', 'eve']);
    browser = await startChromium();
  });

  afterAll(async () => {
    await browser?.close();
    await hub?.[Symbol.asyncDispose]();
  });

  interface Device {
    readonly page: Page;
    readonly complaints: string[];
    readonly devTools: CDPSession;
    readonly authenticatorId: string;
  }

  /** A browser on a device that asks for a finger; it fills in passkeys as soon as a page takes them, if at all. */
  async function openDevice({ fillsIn = false } = {}): Promise<Device> {
    const { page, complaints } = await openProfile(browser);
    if (!fillsIn) {
      await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = undefined');
    }
    return { page, complaints, ...(await addVirtualAuthenticator(page)) };
  }

  async function typePassword(page: Page, userName: string): Promise<void> {
    await page.goto(`${hub.url}hub/login`);
    await page.getByLabel('User name').fill(userName);
    await page.getByLabel('Password', { exact: true }).fill(testPassword);
    await page.getByRole('button', { name: 'Log in', exact: true }).click();
  }

  async function addPasskey(page: Page, name: string): Promise<void> {
    await page.goto(`${hub.url}hub/account`);
    await page.getByLabel('Name of the new passkey').fill(name);
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('Your passkey is added.').waitFor();
    await page.getByRole('link', { name: 'I have saved them' }).click();
    await page.getByRole('heading', { name: 'Account' }).waitFor();
  }

  async function logOut(page: Page): Promise<void> {
    await page.getByRole('button', { name: /your account$/ }).click();
    await page.locator('#user-menu').getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'You are logged out' }).waitFor();
  }

  const hello = (page: Page, name: string) =>
    page.getByRole('heading', { name: `Hello, ${name}` }).waitFor();

  /** What axe-core finds on the page that is open, whose passkey forms are shown here. */
  async function violationsOf(page: Page): Promise<string[]> {
    await page.evaluate(`${axe.source}; 0`);
    const { violations } = await page.evaluate(() =>
      (globalThis as unknown as { axe: typeof axe }).axe.run({ resultTypes: ['violations'] }),
    );
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
  }

  test('a user adds a passkey, and logs in with it alone or after the password', async () => {
    const { page, complaints } = await openDevice();
    await typePassword(page, 'ada');
    await hello(page, 'ada');
    await addPasskey(page, 'My laptop');
    await page.getByText('My laptop').first().waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await logOut(page);

    await page.goto(`${hub.url}hub/login?next=%2Fhub%2Ftoken`);
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Log in with a passkey' }).click();
    await page.waitForURL(`${hub.url}hub/account#tokens`);
    await logOut(page);

    await typePassword(page, 'ada');
    await page.getByRole('heading', { name: 'Use your passkey' }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await hello(page, 'ada');

    await ageLogins(hub);
    await page.goto(`${hub.url}hub/account`);
    await page.getByText('Rename').click();
    await page.getByLabel('New name').fill('Old laptop');
    await page.getByRole('button', { name: 'Save', exact: true }).last().click();
    await page.getByRole('button', { name: 'Remove Old laptop' }).click();
    await page.getByRole('heading', { name: 'Confirm it’s you' }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await page.getByRole('button', { name: 'Use a passkey' }).click();
    await page.getByText('The passkey is removed. All other browsers are logged out.').waitFor();
    await logOut(page);
    await typePassword(page, 'ada');
    await hello(page, 'ada');
    expect(complaints).toEqual([]);
  });

  test('a passkey is filled in where the user name is typed, and nothing is said until then', async () => {
    const { page, complaints, devTools, authenticatorId } = await openDevice({ fillsIn: true });
    await page.addInitScript(`
      const get = navigator.credentials.get.bind(navigator.credentials);
      const asked = globalThis.asked = [];
      navigator.credentials.get = (options) => {
        const entry = { how: options.mediation ?? 'at once', became: 'waits' };
        asked.push(entry);
        const answer = get(options);
        answer.catch((error) => (entry.became = error.name));
        return answer;
      };
    `);
    /** Waits until the page has asked for passkeys in these ways, and that became of it. */
    const asks = (...expected: readonly string[]) =>
      page.waitForFunction(
        ({ wanted }) => {
          const { asked } = globalThis as unknown as { asked: { how: string; became: string }[] };
          return asked.map(({ how, became }) => `${how}: ${became}`).join() === wanted;
        },
        { wanted: expected.join() },
      );
    const touches = (enabled: boolean) =>
      devTools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled });
    await touches(false);

    // With no passkey yet, the password goes on to work.
    await page.goto(`${hub.url}hub/login`);
    await asks('conditional: waits');
    expect(await page.getByLabel('User name').getAttribute('autocomplete')).toBe(
      'username webauthn',
    );
    await typePassword(page, 'eve');
    await hello(page, 'eve');
    await touches(true);
    await addPasskey(page, 'Tablet');
    await logOut(page);

    await page.goto(`${hub.url}hub/login?next=%2Fhub%2Ftoken`);
    await page.waitForURL(`${hub.url}hub/account#tokens`);
    await logOut(page);

    // The button and the form take the offer back.
    await touches(false);
    await page.goto(`${hub.url}hub/login`);
    await asks('conditional: waits');
    await page.getByRole('button', { name: 'Log in with a passkey' }).click();
    await asks('conditional: AbortError', 'at once: waits');
    expect(await page.getByRole('alert').textContent()).toBe('');
    await typePassword(page, 'eve');
    await page.getByRole('heading', { name: 'Use your passkey' }).waitFor();
    expect(complaints).toEqual([]);
  });

  test('who shows no finger, or has no passkey, is told so and can try again', async () => {
    const { page, devTools, authenticatorId } = await openDevice();
    await typePassword(page, 'bob');
    await hello(page, 'bob');
    await addPasskey(page, 'Phone');
    await page.getByLabel('Name of the new passkey').fill('Again');
    await page.getByRole('button', { name: 'Add a passkey' }).click();
    await page.getByText('This device has a passkey for this account already.').waitFor();
    await logOut(page);
    await page.goto(`${hub.url}hub/login`);
    const isUserVerified = (isVerified: boolean) =>
      devTools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: isVerified });
    await isUserVerified(false);
    await page.getByRole('button', { name: 'Log in with a passkey' }).click();
    await page.getByText('No passkey was given. Try again.').waitFor();
    await isUserVerified(true);
    await page.getByRole('button', { name: 'Log in with a passkey' }).click();
    await hello(page, 'bob');
  });
});
