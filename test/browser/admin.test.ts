import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { generateSync } from 'otplib';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readCsv } from '../../src/platform/protocol/csv.ts';
import { hasChromium, openProfile, startChromium } from '../support/chromium.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

/** Goes on with each file that appears. */
const writesOnDemand =
  'echo one; n=0; while :; do if [ -e go.$n ]; then cat go.$n; echo "go $n"; n=$((n+1)); fi; sleep 0.05; done';

describe.runIf(hasChromium())('in a real browser', () => {
  let hub: TestHub;
  let browser: Browser;
  const complaints: string[][] = [];
  beforeAll(async () => {
    hub = await createPasswordHub(['ada', 'bob', 'tim'], {
      Authenticator: { lockout_attempts: 3 },
      Hub: {
        services: [{ name: 'writer', command: ['sh', '-c', writesOnDemand] }],
        load_groups: [{ name: 'statistics-101', users: ['bob'] }],
      },
    });
    browser = await startChromium();
  });
  afterAll(async () => {
    await browser.close();
    await hub[Symbol.asyncDispose]();
  });
  afterEach(() => {
    expect(complaints.flat()).toEqual([]);
  });

  async function newPage(): Promise<Page> {
    const profile = await openProfile(browser);
    complaints.push(profile.complaints);
    return profile.page;
  }

  async function typePassword(page: Page, name: string, password = testPassword): Promise<void> {
    await page.goto(`${hub.url}hub/login`);
    await fillInLogin(page, name, password);
  }

  async function fillInLogin(page: Page, name: string, password = testPassword): Promise<void> {
    await page.getByLabel('User name').fill(name);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Log in' }).click();
  }

  /** Of the page of an import, by the names of their users. */
  async function downloadedLinks(page: Page): Promise<ReadonlyMap<string, string>> {
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download invitation links' }).click();
    const { lines } = await readCsv(await readFile(await (await downloading).path(), 'utf8'));
    return new Map(lines.slice(1).map(({ cells: [name = '', , url = ''] }) => [name, url]));
  }

  async function logIn(name: string): Promise<Page> {
    const page = await newPage();
    await typePassword(page, name);
    await page.waitForURL('**/hub/home');
    return page;
  }

  test('the output of a service follows, is paused, searched, and goes on', async () => {
    const ada = await logIn('ada');
    await ada.goto(`${hub.url}hub/admin/services/writer`);
    const [lines, state] = [ada.locator('#output-lines'), ada.locator('#output-state')];
    const shows = (hasText: string) => ada.locator('#output-lines', { hasText }).waitFor();
    const says = (hasText: string) => ada.locator('#output-state', { hasText }).waitFor();
    const goOn = (step: number) => writeFile(join(hub.directory, `go.${step}`), '');
    await shows('one');
    await goOn(0);
    await shows('go 0');

    await ada.getByRole('button', { name: 'Pause' }).click();
    await goOn(1);
    await says('1 more below');
    // Nor by a search and its end.
    await ada.getByLabel('Show only lines with').fill('go');
    await says('1 of 2 lines.');
    await ada.getByLabel('Show only lines with').fill('');
    await shows('one go 0');
    expect(await lines.textContent()).not.toContain('go 1');
    await ada.getByRole('button', { name: 'Resume' }).click();
    await shows('go 1');

    await ada.getByLabel('Show only lines with').fill('GO 0');
    await says('1 of 3 lines.');
    expect(await lines.textContent()).toBe('go 0');
    await ada.getByLabel('Show only lines with').fill('');
    await shows('one go 0 go 1');
    expect(await state.textContent()).toBe('');
    // More than there is room for: the newest stands at the foot of it.
    // Whole from the start: the service reads it as soon as it is there.
    const whole = join(hub.directory, 'whole');
    await writeFile(whole, Array.from({ length: 80 }, String).join('\n'));
    await rename(whole, join(hub.directory, 'go.2'));
    await shows('go 2');
    const places = await ada.evaluate<{ bottom: number; foot: number; isLonger: boolean }>(
      `(() => {
        const lines = document.getElementById('output-lines');
        const box = lines.parentElement;
        const isLonger = lines.offsetHeight > box.clientHeight;
        const [{ bottom }, foot] = [lines.getBoundingClientRect(), box.getBoundingClientRect().bottom];
        return { bottom, foot, isLonger };
      })()`,
    );
    expect(places.isLonger).toBe(true);
    expect(places.bottom).toBeLessThanOrEqual(places.foot);
    const downloading = ada.waitForEvent('download');
    await ada.getByRole('link', { name: 'Download' }).click();
    expect((await downloading).suggestedFilename()).toBe('service-writer.log');

    // What it wrote last can be read when it has ended.
    await hub.api('/services/writer/stop', 'admin-service-token', { method: 'POST' });
    await ada.getByText('Stopped').first().waitFor();
    await shows('go 2');
    expect(await state.textContent()).toBe('');
  });

  test('an administrator invites a user, who chooses a password and is in', async () => {
    const ada = await logIn('ada');
    await ada.getByRole('link', { name: 'Admin' }).click();
    await ada
      .getByRole('navigation', { name: 'Administration' })
      .getByRole('link', { name: 'Users' })
      .click();
    await ada.getByRole('link', { name: 'Add users' }).click();
    await ada.getByLabel('Users').fill('carol\ndave');
    await ada.getByRole('button', { name: 'Check the list' }).click();
    await ada.getByRole('button', { name: 'Create 2 users' }).click();
    const [link = ''] = [...(await downloadedLinks(ada)).values()];

    const carol = await newPage();
    await carol.goto(link);
    await carol.getByLabel('New password').fill(testPassword);
    await carol.getByRole('button', { name: 'Show' }).first().click();
    await carol.getByLabel('Confirm password').fill(testPassword);
    await carol.getByRole('button', { name: 'Choose password and log in' }).click();
    await carol.waitForURL('**/hub/home');
    expect(await carol.getByRole('heading', { level: 1 }).textContent()).toBe('Hello, carol');
    await carol.goto(link);
    await carol.getByText('This link has expired').waitFor();

    await ada.goto(`${hub.url}hub/admin/users/carol?tab=logins`);
    await ada.getByRole('button', { name: 'End all logins' }).click();
    await ada.getByText('All logins have ended.').waitFor();
    await carol.goto(`${hub.url}hub/home`);
    expect(carol.url()).toContain('/hub/login');
  });

  test('60 students of a CSV file are there after three clicks, none of its wrong lines', async () => {
    const ada = await logIn('ada');
    await ada.goto(`${hub.url}hub/admin/new-users`);
    const lines = Array.from({ length: 60 }, (_, n) => `stud${n};Zoë ${n};stud${n}@uni.org`);
    const csv = ['Benutzername;Name;E-Mail', ...lines, 'ada;;', 'x/y;;', 'stud1;;'].join('\r\n');
    const file = { name: 's.csv', mimeType: 'text/csv', buffer: Buffer.from(csv, 'latin1') };
    await ada.getByLabel('Or a CSV file').setInputFiles(file);
    await expect.poll(() => ada.getByLabel('Users').inputValue()).toContain('Zoë 59');
    await ada.getByRole('button', { name: 'Check the list' }).click();
    await ada.getByText('3 lines are left out.').waitFor();
    await ada.getByRole('button', { name: 'Create 60 users' }).click();
    await ada.getByText('Finished for all.').waitFor();
    await ada.reload();
    expect([...(await downloadedLinks(ada)).keys()]).toHaveLength(60);
    const last = await (await hub.api('/users/stud59', 'admin-service-token')).json();
    expect(last).toMatchObject({ user_info: { display_name: 'Zoë 59' } });
  });

  test('a teaching assistant gets rights over one course in four clicks', async () => {
    const ada = await logIn('ada');
    await ada.goto(`${hub.url}hub/admin/users/tim`);
    let clicks = 0;
    const click = async (role: 'link' | 'radio' | 'button', name: string) => {
      clicks++;
      await ada.getByRole(role, { name }).click();
    };
    await click('link', 'Give access');
    await click('radio', 'Course assistant');
    await ada.getByLabel('Name of the group').fill('statistics-101');
    await click('button', 'Give access');
    await ada.getByText('Access is given to tim.').waitFor();
    expect(clicks).toBeLessThanOrEqual(4);

    const tim = await logIn('tim');
    await tim.goto(`${hub.url}hub/admin/users/bob`);
    await tim.getByRole('button', { name: 'Start the default server' }).first().waitFor();

    // Words of scopes complete one after another.
    await ada.getByRole('link', { name: 'Give access' }).click();

    // Names complete, of the kind that is chosen beside them.
    const find = ada.getByLabel('Find a name');
    const offers = (list: string, name: string) =>
      ada.locator(`#${list} option[value="${name}"]`).waitFor({ state: 'attached' });
    await find.fill('bo');
    await offers('find-names-list', 'bob');
    await find.fill('bob');
    await find.press('Enter');
    expect(await ada.getByLabel('Names', { exact: true }).inputValue()).toBe('tim\nbob');
    await ada.getByLabel('To', { exact: true }).selectOption('Groups');
    await find.fill('statis');
    await offers('find-names-list', 'statistics-101');
    await ada.getByLabel('Where').selectOption('In one server');
    await ada.getByLabel('Name of the group').fill('bo');
    await offers('places', 'bob/');
    await ada.getByText('Advanced', { exact: true }).click();
    await ada.getByLabel('Scopes').fill('servers read');
    const offered = ada.locator('#scopes option[value="servers read:users"]');
    await offered.waitFor({ state: 'attached' });
  });

  test('pages count down to a maintenance that is scheduled', async () => {
    const ada = await logIn('ada');
    await ada.goto(`${hub.url}hub/admin/announcements`);
    const start = new Date(Date.now() + 3 * 3_600_000).toISOString().slice(0, 16);
    await ada.getByLabel('Begins (UTC)').fill(start);
    await ada.getByRole('button', { name: 'Continue' }).click();
    await ada.getByText('No server runs now.').waitFor();
    await ada.getByRole('button', { name: 'Schedule maintenance' }).click();
    await ada.getByText('Maintenance is scheduled.').waitFor();

    const bob = await logIn('bob');
    await bob.clock.install();
    await bob.reload();
    await bob.getByText('in 2 hours').waitFor();
    await bob.clock.fastForward('02:30:00');
    await bob.getByText(/in (?:28|29|30) minutes/).waitFor();
    await ada.getByRole('button', { name: 'Cancel maintenance' }).click();
    await bob.reload();
    await bob.getByText('Maintenance begins').waitFor({ state: 'detached' });
  });

  test('a user sets up a second factor, logs in with it, and turns it off', async () => {
    const bob = await logIn('bob');
    await bob.getByRole('button', { name: 'Your account' }).click();
    await bob.getByRole('link', { name: 'Account', exact: true }).click();
    await bob.getByRole('link', { name: 'Set up' }).click();
    expect(await bob.getByRole('img', { name: /QR code/ }).isVisible()).toBe(true);
    await bob.getByText('Type the key instead').click();
    const key = ((await bob.locator('#copy-key').textContent()) ?? '').replaceAll(' ', '');
    const code = (step: number) =>
      generateSync({ secret: key, epoch: Math.floor(Date.now() / 1000) + 30 * step });
    await bob.getByLabel('Six digits').fill(code(0));
    await bob.getByRole('button', { name: 'Turn on' }).click();
    const recoveryCodes = await bob.locator('#recovery-codes li').allTextContents();
    expect(recoveryCodes).toHaveLength(10);
    await bob.getByRole('link', { name: 'I have saved them' }).click();
    await bob.getByText('You have 10 recovery codes left.').waitFor();

    const other = await newPage();
    await typePassword(other, 'bob');
    await other.getByLabel('Code').fill(code(1));
    await other.getByRole('button', { name: 'Log in', exact: true }).click();
    await other.waitForURL('**/hub/home');

    const third = await newPage();
    await typePassword(third, 'bob');
    await third.getByRole('link', { name: 'Use a recovery code' }).click();
    await third.getByLabel('Recovery code').fill(recoveryCodes[0] ?? '');
    await third.getByRole('button', { name: 'Log in', exact: true }).click();
    await third.waitForURL('**/hub/home');

    await bob.getByRole('link', { name: 'Turn off…' }).click();
    await bob.getByLabel('Code').fill(recoveryCodes[1] ?? '');
    await bob.getByRole('button', { name: 'Turn off' }).click();
    await bob.getByText('Your authenticator app is off.').waitFor();
  });

  test('a locked-out person waits until an administrator lifts it', async () => {
    await hub.api('/users/erin', 'admin-service-token', { method: 'POST' });
    const erin = await newPage();
    for (let attempt = 0; attempt < 3; attempt += 1) await typePassword(erin, 'erin', 'a guess');
    await typePassword(erin, 'erin', 'a guess');
    await erin.getByText('Too many attempts.').waitFor();
    const ada = await logIn('ada');
    await ada.goto(`${hub.url}hub/admin/lockouts`);
    await ada.getByRole('button', { name: 'Unlock erin' }).click();
    await ada.getByText('erin is unlocked.').waitFor();
    await typePassword(erin, 'erin', 'a guess');
    await erin.getByText('Incorrect username or password.').waitFor();
  });

  test('a user is deleted only after the name is typed', async () => {
    await hub.api('/users/frank', 'admin-service-token', { method: 'POST' });
    const ada = await logIn('ada');
    await ada.goto(`${hub.url}hub/admin/users/frank`);
    await ada.getByText('More actions').click();
    await ada.getByRole('link', { name: 'Delete frank' }).click();
    await ada.getByLabel('Type frank to confirm').fill('frank');
    await ada.getByRole('button', { name: 'Delete user' }).click();
    await ada.getByText('frank is deleted.').waitFor();
  });

  test("another site's page can neither log a user out nor act for them", async () => {
    const ada = await logIn('ada');
    const page = `<a href="${hub.url}hub/logout">Go</a>
      <form method="post" action="${hub.url}hub/admin/import-users"><input name="people" value="intruder"><input name="act" value="import"><button>Win</button></form>`;
    await ada.route('http://localhost:9/', (route) =>
      route.fulfill({ contentType: 'text/html', body: page }),
    );
    await ada.goto('http://localhost:9/');
    await ada.getByRole('button', { name: 'Win' }).click();
    await ada.waitForURL('**/hub/admin/import-users');
    expect((await hub.api('/users/intruder', 'admin-service-token')).status).toBe(404);
    await ada.goto('http://localhost:9/');
    await ada.getByRole('link', { name: 'Go' }).click();
    await ada.getByRole('heading', { name: 'Log out?' }).waitFor();
    await ada.getByRole('link', { name: 'Cancel' }).click();
    expect(await ada.getByRole('heading', { level: 1 }).textContent()).toBe('Hello, ada');
  });

  test('a list goes on following what happens while something in it has the focus', async () => {
    const ada = await logIn('ada');
    await ada.clock.install();
    await ada.goto(`${hub.url}hub/admin/users`);
    const link = ada.getByRole('link', { name: 'bob', exact: true });
    await link.focus();
    await hub.api('/users/latecomer', 'admin-service-token', { method: 'POST' });
    await ada.clock.runFor(11_000);
    await ada.getByRole('link', { name: 'latecomer' }).waitFor();
    expect(await ada.evaluate('document.activeElement.textContent')).toBe('bob');
  });

  test('a page that slept says that it is not live, catches up, and leads to the login that it needs', async () => {
    const ada = await logIn('ada');
    await ada.clock.install();
    const url = `${hub.url}hub/admin/users?search=e&sort=-name`;
    await ada.goto(url);
    const reported = ada.locator('#not-live');
    expect(await reported.textContent()).toBe('');
    // As over a connection that broke without a word.
    await ada.route(url, () => {});
    await until(async () => {
      await ada.clock.runFor(11_000);
      return (await reported.textContent()) !== '';
    }, 'the page says that it is not live');
    expect(await reported.textContent()).toContain('may be out of date');
    await ada.unroute(url);
    await hub.api('/users/sleeper', 'admin-service-token', { method: 'POST' });
    await until(async () => {
      await ada.clock.runFor(11_000);
      return (await ada.getByRole('link', { name: 'sleeper' }).count()) > 0;
    }, 'the page catches up');
    expect(await reported.textContent()).toBe('');
    const fetched: string[] = [];
    ada.on('requestfinished', (request) => {
      if (request.resourceType() === 'fetch') fetched.push(request.url());
    });
    await ada.context().clearCookies();
    await ada.clock.runFor(11_000);
    await ada.waitForURL('**/hub/login?**');
    // A script that follows to the login would be led on to a provider, and refused there.
    expect(fetched.filter((address) => address !== url)).toEqual([]);
    await fillInLogin(ada, 'ada');
    await ada.waitForURL(url);
  });

  test('what is typed when the login ends stays, and is there after the next one', async () => {
    const ada = await logIn('ada');
    await ada.clock.install();
    const url = `${hub.url}hub/admin/users/bob`;
    await ada.goto(url);
    await ada.getByText('Change display name').click();
    const name = ada.getByLabel('Display name');
    await name.fill('Bob the builder');
    await ada.context().clearCookies();
    const reported = ada.locator('#not-live');
    await until(async () => {
      await ada.clock.runFor(6_000);
      return (await reported.textContent()) !== '';
    }, 'the page says that the login has ended');
    expect(await reported.textContent()).toContain('You may have been logged out.');
    expect(ada.url()).toBe(url);
    await ada.getByRole('button', { name: 'Save' }).click();
    await fillInLogin(ada, 'ada');
    await ada.waitForURL(url);
    // Unfolded, too.
    await name.waitFor();
    expect(await name.inputValue()).toBe('Bob the builder');
  });

  test('every page of the administration fits a telephone', async () => {
    const ada = await logIn('ada');
    await ada.setViewportSize({ width: 360, height: 740 });
    await hub.api(
      '/groups/a-name-without-any-place-to-break-that-goes-on-and-on',
      'admin-service-token',
      {
        method: 'POST',
        body: JSON.stringify({ users: ['bob'] }),
      },
    );
    for (const path of [
      '',
      '/new-users',
      '/users/bob',
      '/users/bob/delete',
      '/groups',
      '/groups/a-name-without-any-place-to-break-that-goes-on-and-on',
      '/services',
      '/lockouts',
      '/keys',
      '/../account',
      '/../account/second-factor',
      '/../sessions',
    ]) {
      await ada.goto(`${hub.url}hub/admin${path}`);
      const overflow = await ada.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      );
      expect([path, overflow]).toEqual([path, 0]);
    }
  });
});
