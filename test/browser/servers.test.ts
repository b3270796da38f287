import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import {
  adminToken,
  createServerHub,
  fixtureApp,
  onceReportedTo,
  serverPath,
  tellToGo,
} from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

describe.runIf(hasChromium())('servers in a real browser', () => {
  let hub: TestHub;
  let browser: Browser;
  const complaints: string[][] = [];
  beforeAll(async () => {
    hub = await createServerHub({
      Spawner: {
        profiles: [
          {
            name: 'patient',
            display_name: 'Patient',
            description: 'Starts when it is told',
            cmd: onceReportedTo(...fixtureApp('web-server')),
          },
          {
            name: 'broken',
            display_name: 'Broken',
            description: 'Ends at once',
            cmd: fixtureApp('exit-at-once', '4'),
          },
        ],
      },
    });
    browser = await startChromium();
  });
  afterAll(async () => {
    await browser.close();
    await hub[Symbol.asyncDispose]();
    expect(complaints.flat()).toEqual([]);
  });

  async function logIn(name: string): Promise<Page> {
    const profile = await openProfile(browser);
    complaints.push(profile.complaints);
    const { page } = profile;
    await page.goto(`${hub.url}hub/login`);
    await page.getByLabel('User name').fill(name);
    await page.getByLabel('Password', { exact: true }).fill('test');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.waitForURL('**/hub/home');
    return page;
  }

  async function choose(page: Page, profile: string): Promise<void> {
    await page.getByRole('radio', { name: profile }).check();
    await page.getByRole('button', { name: /Start/ }).click();
  }

  test('a user opens the address of a stopped server, chooses, watches it start, and is in', async () => {
    const page = await logIn('alice');
    await page.goto(`${hub.url}user/alice/notes?x=1`);
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('is not running');
    await page.getByRole('link', { name: /Start server/ }).click();
    await choose(page, 'Patient');
    await page.getByRole('heading', { name: /is starting/ }).waitFor();
    const log = page.getByRole('log');
    await log.getByText('Server requested.').waitFor();
    await page.locator('#start-output').getByText('waiting').waitFor();
    // The time goes on, and the bar with it, though nothing more is told.
    const elapsed = await page.locator('#elapsed').textContent();
    expect(elapsed).toMatch(/^\d+ (?:s|min \d+ s)$/);
    await until(
      async () => (await page.locator('#elapsed').textContent()) !== elapsed,
      'the time goes on',
    );
    const value = async () => Number(await page.locator('#progress').getAttribute('value'));
    await until(async () => (await value()) > 0, 'the bar moves');
    // Nobody reloads: the page follows the events and goes where it was going.
    await tellToGo(hub, 'alice');
    await page.waitForURL('**/user/alice/notes?x=1');
    expect(await page.textContent('body')).toContain('"url":"/user/alice/notes?x=1"');

    await page.goto(`${hub.url}hub/home`);
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped').first().waitFor();
  });

  test('a start that fails shows why on the same page, and can be tried again', async () => {
    const page = await logIn('bob');
    await page.goto(`${hub.url}hub/spawn`);
    await choose(page, 'Broken');
    await page.getByText('exited (code 4)').waitFor();
    expect(await page.getByText('something is missing').count()).toBe(1);
    const before = await page.locator('time').getAttribute('datetime');
    await page.getByRole('button', { name: 'Try again with the same options' }).click();
    const failedAgain = page.locator(`time:not([datetime="${before}"])`);
    await failedAgain.waitFor();
    await page.getByText('exited (code 4)').waitFor();

    await page.goto(`${hub.url}hub/home`);
    await page.getByRole('link', { name: 'View error' }).click();
    await page.getByText('something is missing').waitFor();
    await page.getByRole('link', { name: 'Start…' }).click();
    expect(await page.getByRole('radio', { name: 'Broken' }).isChecked()).toBe(true);
  });

  test('pages that follow a start stay in the language of their reader', async () => {
    const { page, complaints: received } = await openProfile(browser, { locale: 'de-AT' });
    complaints.push(received);
    await page.goto(`${hub.url}hub/login`);
    await page.getByLabel('Benutzername').fill('dora');
    await page.getByLabel('Passwort', { exact: true }).fill('test');
    await page.getByRole('button', { name: 'Anmelden' }).click();
    await page.waitForURL('**/hub/home');

    await page.goto(`${hub.url}hub/spawn`);
    await page.getByRole('radio', { name: 'Broken' }).check();
    await page.getByRole('button', { name: /starten/ }).click();
    await page.getByText('hat sich beendet (Code 4)').first().waitFor();
    await page.getByRole('button', { name: 'Mit denselben Optionen erneut versuchen' }).waitFor();

    await page.goto(`${hub.url}hub/spawn`);
    await page.getByRole('radio', { name: 'Patient' }).check();
    await page.getByRole('button', { name: /starten/ }).click();
    const log = page.getByRole('log');
    await log.getByText('Server angefordert.').waitFor();
    await log.getByRole('listitem').nth(2).waitFor();
    // The stream of events tells the first line again: it is there already, in the same words.
    expect(await log.innerText()).not.toMatch(/requested|[Ww]aiting|[Ss]tarting/);
    await page.goto(`${hub.url}hub/home`);
    await page.getByText('Startet').first().waitFor();
    await tellToGo(hub, 'dora');
    // Nobody reloads.
    await page.getByText('Läuft').first().waitFor();
    await page.getByText(/^Gestartet /).waitFor();
    expect(await page.getByText(/Running|Starting|Started/).count()).toBe(0);
  });

  test('what a server wrote stays on the page that follows it when it is stopped', async () => {
    const page = await logIn('erin');
    await page.goto(`${hub.url}hub/spawn`);
    await choose(page, 'Patient');
    await page.getByRole('log').getByText('Server requested.').waitFor();
    await tellToGo(hub, 'erin');
    await page.waitForURL('**/user/erin/**');
    await page.goto(`${hub.url}hub/servers/erin`);
    const lines = page.locator('#output-lines', { hasText: 'waiting' });
    await lines.waitFor();
    // Followed: the script shows its controls.
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    const reported = page.waitForResponse(
      async (answer) =>
        answer.url().includes('/hub/servers/erin') && (await answer.text()).includes('Stopped'),
    );
    await hub.api(serverPath('erin'), adminToken, { method: 'DELETE' });
    await reported;
    await page.getByText('Stopped').first().waitFor();
    await lines.waitFor();
    expect(await page.locator('#output-state').textContent()).toBe('');
  });

  test('a start is cancelled by its button', async () => {
    const page = await logIn('carol');
    await page.goto(`${hub.url}hub/spawn`);
    await choose(page, 'Patient');
    await page.getByRole('button', { name: 'Cancel the start' }).click();
    await page.waitForURL('**/hub/home');
    const answer = await hub.api(serverPath('carol'), adminToken);
    expect(((await answer.json()) as { ready: boolean }).ready).toBe(false);
  });
});
