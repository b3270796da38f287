import { generateSync } from 'otplib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins } from '../support/login-age.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import {
  addPasskey,
  createPasskeyHub,
  openForm,
  post,
  recoveryCodesOn,
} from '../support/passkey-hub.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import { submitForm, submitLogin, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasskeyHub(['ada', 'bob'], { Authenticator: { lockout_attempts: 4 } });
});
afterAll(() => hub[Symbol.asyncDispose]());

const epoch = () => Math.floor(Date.now() / 1000);
/**
 * The code of the next step, which a clock that is ahead shows: the set-up has used up the present
 * one, and a step that begins in the middle of a test changes nothing.
 */
const codeOf = (secret: string, step = 1) => generateSync({ secret, epoch: epoch() + 30 * step });
const wrongFor = (secret: string) => {
  const near = new Set([-1, 0, 1, 2, 3].map((step) => codeOf(secret, step)));
  return (
    ['000000', '111111', '222222', '333333', '444444', '555555'].find((code) => !near.has(code)) ??
    ''
  );
};

interface Enrolled {
  readonly name: string;
  readonly secret: string;
  /** The code that confirmed the set-up. */
  readonly usedCode: string;
  readonly recoveryCodes: readonly string[];
  readonly browser: FakeBrowser;
}

let counter = 0;
/** A new user with a second factor. */
async function enrol(): Promise<Enrolled> {
  counter += 1;
  const name = `user${counter}`;
  const invited = await inviteUser(hub, name);
  await acceptInvitation(hub, invited.secret, testPassword);
  const browser = await hub.logIn(name, testPassword);
  const page = await browser.request(`${hub.url}hub/account/second-factor`);
  const secret = /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(page.body)?.[1]?.replaceAll(' ', '') ?? '';
  const usedCode = codeOf(secret, 0);
  const done = await submitMain(browser, page, { code: usedCode });
  const recoveryCodes = recoveryCodesOn(done);
  expect(recoveryCodes).toHaveLength(10);
  return { name, secret, usedCode, recoveryCodes, browser };
}

/** Passes the password and arrives at the question for the code. */
async function askedFor(name: string): Promise<{ browser: FakeBrowser; page: BrowserAnswer }> {
  const browser = new FakeBrowser();
  const answer = await submitLogin(browser, hub.url, name, testPassword, '/hub/token');
  expect(answer.headers.location).toBe('/hub/login/second-factor');
  const page = await browser.request(`${hub.url}hub/login/second-factor`);
  expect(page.body).toContain('Enter your code');
  return { browser, page };
}

const isLoggedIn = async (browser: FakeBrowser) =>
  (await browser.request(`${hub.url}hub/home`)).status === 200;

describe('a login with a second factor', () => {
  test('needs the code, and leads where it was going', async () => {
    const { name, secret } = await enrol();
    const { browser, page } = await askedFor(name);
    expect(await isLoggedIn(browser)).toBe(false);
    expect(browser.cookieNames()).not.toContain('hub-session-id');
    const answer = await submitMain(browser, page, { code: codeOf(secret) });
    expect(answer.headers.location).toBe('/hub/token');
    expect(await isLoggedIn(browser)).toBe(true);
  });

  test('a code works once, also for another browser', async () => {
    const { name, secret, usedCode } = await enrol();
    const code = codeOf(secret);
    const first = await askedFor(name);
    const second = await askedFor(name);
    expect((await submitMain(first.browser, first.page, { code })).status).toBe(303);
    expect((await submitMain(second.browser, second.page, { code })).status).toBe(401);
    // The code with which the factor was set up is used up, too.
    const third = await askedFor(name);
    expect((await submitMain(third.browser, third.page, { code: usedCode })).status).toBe(401);
    expect(await isLoggedIn(second.browser)).toBe(false);
  });

  test('of one code sent many times at once, one gets in', async () => {
    const { name, secret } = await enrol();
    const browsers = await Promise.all([askedFor(name), askedFor(name), askedFor(name)]);
    const code = codeOf(secret);
    const answers = await Promise.all(
      browsers.map(({ browser, page }) => submitMain(browser, page, { code })),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
  });

  test('a recovery code works once, however it is typed', async () => {
    const { name, recoveryCodes } = await enrol();
    const code = (recoveryCodes[0] ?? '').replaceAll('-', ' ').toUpperCase();
    const first = await askedFor(name);
    expect((await submitMain(first.browser, first.page, { code })).status).toBe(303);
    const account = await first.browser.request(`${hub.url}hub/account`);
    expect(account.body).toContain('You have 9 recovery codes left.');
    const second = await askedFor(name);
    expect((await submitMain(second.browser, second.page, { code })).status).toBe(401);
  });

  test("another user's codes are of no use", async () => {
    const one = await enrol();
    const other = await enrol();
    const { browser, page } = await askedFor(one.name);
    const [recoveryCode = ''] = other.recoveryCodes;
    expect((await submitMain(browser, page, { code: recoveryCode })).status).toBe(401);
    expect((await submitMain(browser, page, { code: wrongFor(one.secret) })).status).toBe(401);
  });

  test('guessing is slowed down, and a right password does not reset the count', async () => {
    const { name, secret } = await enrol();
    const statuses: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const { browser, page } = await askedFor(name);
      statuses.push((await submitMain(browser, page, { code: wrongFor(secret) })).status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 429, 429]);
    const { browser, page } = await askedFor(name);
    const right = await submitMain(browser, page, { code: codeOf(secret) });
    expect(right.status).toBe(429);
    expect(Number(right.headers['retry-after'])).toBeGreaterThan(0);
  });

  test('guesses sent all at once do not slip past the limit', async () => {
    const { name, secret } = await enrol();
    const { browser, page } = await askedFor(name);
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => submitMain(browser, page, { code: wrongFor(secret) })),
    );
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(4);
  });

  test('the step belongs to the browser that typed the password', async () => {
    const { name, secret } = await enrol();
    const { browser } = await askedFor(name);
    const other = new FakeBrowser();
    const page = await other.request(`${hub.url}hub/login/second-factor`);
    expect(page.headers.location).toBe('/hub/login');
    // Not even with the form of the other browser, or with a made-up or doubled cookie.
    const sealed = browser.cookie('hub-login-step')?.value ?? '';
    other.setCookie('hub-login-step', `${sealed.slice(0, -4)}AAAA`, '/hub/');
    expect((await other.request(`${hub.url}hub/login/second-factor`)).status).toBe(303);
    const answer = await other.request(`${hub.url}hub/login/second-factor`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ code: codeOf(secret) }).toString(),
    });
    expect(answer.status).toBe(403);
  });

  test('who gives up is asked for the password again', async () => {
    const { name, secret } = await enrol();
    const { browser, page } = await askedFor(name);
    const aside = page.body.slice(page.body.indexOf('class="aside"'));
    await submitForm(browser, { ...page, body: aside }, {});
    expect((await submitMain(browser, page, { code: codeOf(secret) })).headers.location).toBe(
      '/hub/login',
    );
    expect(await isLoggedIn(browser)).toBe(false);
  });
});

describe('changing the second factor', () => {
  test('needs a code to turn it off and to make new recovery codes', async () => {
    const { name, secret, recoveryCodes, browser } = await enrol();
    const page = await browser.request(`${hub.url}hub/account/second-factor/recovery-codes`);
    expect((await submitMain(browser, page, { code: wrongFor(secret) })).status).toBe(400);
    const renewed = await submitMain(browser, page, { code: codeOf(secret) });
    expect(renewed.body).toContain('These replace the codes you had.');
    const [, newCode = ''] = /<li>([a-z2-9-]{19})<\/li>/.exec(renewed.body) ?? [];

    const removal = await browser.request(`${hub.url}hub/account/second-factor/remove`);
    const [oldCode = ''] = recoveryCodes;
    expect((await submitMain(browser, removal, { code: oldCode })).status).toBe(400);
    expect((await submitMain(browser, removal, { code: newCode })).status).toBe(303);
    await hub.logIn(name, testPassword);
  });

  test('a recent login does not stand for the code of the app', async () => {
    const { browser, recoveryCodes, name } = await enrol();
    const path = 'hub/account/second-factor/recovery-codes';
    const refused = await post(await openForm(hub, browser, path), path, {});
    expect([refused.status, recoveryCodesOn(refused)]).toEqual([400, []]);
    const { browser: other, page } = await askedFor(name);
    expect((await submitMain(other, page, { code: recoveryCodes[0] ?? '' })).status).toBe(303);
  });

  test('a wrong code leaves the secret of a set-up as it is, another visit makes a new one', async () => {
    const browser = await hub.logIn('bob', testPassword);
    const url = `${hub.url}hub/account/second-factor`;
    const secretOn = ({ body }: BrowserAnswer) =>
      /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(body)?.[1];
    const page = await browser.request(url);
    const wrong = await submitMain(browser, page, { code: 'no code' });
    expect([wrong.status, secretOn(wrong)]).toEqual([400, secretOn(page)]);
    expect(wrong.body).toContain('This code is wrong');
    expect(secretOn(await browser.request(url))).not.toBe(secretOn(page));
  });

  test('is the one that this login was shown, whatever another login was shown since', async () => {
    const url = `${hub.url}hub/account/second-factor`;
    const secretOn = ({ body }: BrowserAnswer) =>
      (/id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(body)?.[1] ?? '').replaceAll(' ', '');
    const stateOn = ({ body }: BrowserAnswer) =>
      /name="state" value="([^"]+)"/.exec(body)?.[1] ?? '';
    const browser = await hub.logIn('bob', testPassword);
    const page = await browser.request(url);
    const other = await (await hub.logIn('bob', testPassword)).request(url);
    const again = await submitMain(browser, page, { code: 'no code' });
    expect(secretOn(again)).toBe(secretOn(page));
    const foreign = { code: codeOf(secretOn(other), 0), state: stateOn(other) };
    expect((await submitMain(browser, page, foreign)).status).toBe(400);
    expect((await submitMain(browser, page, { code: foreign.code })).status).toBe(400);
  });

  test('cannot be set up over one that is on', async () => {
    const { browser } = await enrol();
    const page = await browser.request(`${hub.url}hub/account/second-factor`);
    expect(page.headers.location).toBe('/hub/account');
  });

  test('is not asked for before the set-up is confirmed', async () => {
    const browser = await hub.logIn('bob', testPassword);
    await browser.request(`${hub.url}hub/account/second-factor`);
    await hub.logIn('bob', testPassword);
  });

  test('an administrator removes it for a user who lost everything', async () => {
    const { name } = await enrol();
    const ada = await hub.logIn('ada', testPassword);
    const page = await ada.request(`${hub.url}hub/admin/users/${name}`);
    expect(page.body).toContain('Remove the second factor');
    const answer = await submitTo(ada, page, `/hub/admin/users/${name}/remove-second-factor`);
    expect(answer.status).toBe(303);
    await hub.logIn(name, testPassword);
  });

  test('a reset link replaces the password, not the second factor', async () => {
    const { name, secret } = await enrol();
    const link = await inviteUser(hub, name);
    const browser = new FakeBrowser();
    const answer = await acceptInvitation(hub, link.secret, 'quiet morning rivers', browser);
    expect(answer.headers.location).toBe('/hub/login/second-factor');
    expect(await isLoggedIn(browser)).toBe(false);
    const page = await browser.request(`${hub.url}hub/login/second-factor`);
    expect((await submitMain(browser, page, { code: codeOf(secret) })).status).toBe(303);
    expect(await isLoggedIn(browser)).toBe(true);
  });
});

describe('a user who has passkeys only', () => {
  async function enrolPasskey() {
    counter += 1;
    const name = `user${counter}`;
    const { secret } = await inviteUser(hub, name);
    await acceptInvitation(hub, secret, testPassword);
    const browser = await hub.logIn(name, testPassword);
    const { id, recoveryCodes } = await addPasskey(hub, browser);
    expect(recoveryCodes).toHaveLength(10);
    return { name, browser, id, recoveryCodes };
  }

  /** Passes the password, and asks for the form for a recovery code. */
  async function lost(name: string) {
    const browser = new FakeBrowser();
    await submitLogin(browser, hub.url, name, testPassword, '/hub/token');
    const page = await browser.request(`${hub.url}hub/login/second-factor`);
    expect(page.body).toContain('Use a recovery code');
    const asking = await openForm(hub, browser, 'hub/login/second-factor?with=recovery-code');
    const send = (code = '') =>
      post(asking, 'hub/login/second-factor', { code, with: 'recovery-code' });
    return { browser, send };
  }

  test('logs in with a recovery code, once, which is recorded', async () => {
    const { name, recoveryCodes } = await enrolPasskey();
    const { browser, send } = await lost(name);
    const entered = await send(recoveryCodes[0]);
    expect(entered.headers.location).toBe('/hub/token');
    const account = await browser.request(`${hub.url}hub/account`);
    expect(account.body).toContain('You have 9 recovery codes left.');
    expect(account.body).toContain('second_factor.use_recovery_code');
    const again = await lost(name);
    expect((await again.send(recoveryCodes[0])).status).toBe(401);
    expect(await isLoggedIn(again.browser)).toBe(false);
    const audit = await hub.api(`/audit?target=${name}`, 'admin-service-token');
    expect(await audit.json()).toMatchObject({
      entries: expect.arrayContaining([
        expect.objectContaining({
          action: 'second_factor.use_recovery_code',
          detail: { left: 9 },
        }),
      ]),
    });
  });

  test('is not helped by the codes of others, nor by guessing', async () => {
    const { name, recoveryCodes } = await enrolPasskey();
    const other = await enrolPasskey();
    const statuses: number[] = [];
    for (const code of [...other.recoveryCodes.slice(0, 2), 'aaaa-aaaa-aaaa-aaaa', '', '000000']) {
      const { send } = await lost(name);
      statuses.push((await send(code)).status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 429]);
    const { browser, send } = await lost(name);
    expect((await send(recoveryCodes[0])).status).toBe(429);
    expect(await isLoggedIn(browser)).toBe(false);
    const owner = await lost(other.name);
    expect((await owner.send(other.recoveryCodes[0])).status).toBe(303);
  });

  test('makes new codes after a recent login only, and confirms it with a code', async () => {
    const { browser, recoveryCodes } = await enrolPasskey();
    const path = 'hub/account/second-factor/recovery-codes';
    const fresh = await post(await openForm(hub, browser, path), path, {});
    const [newCode = ''] = recoveryCodesOn(fresh);
    await ageLogins(hub);
    const asking = await openForm(hub, browser, path);
    const asks = await post(asking, path, {});
    expect([asks.status, recoveryCodesOn(asks)]).toEqual([403, []]);
    const waiting = /name="pending_form" value="([^"]+)"/.exec(asks.body)?.[1] ?? '';
    const confirm = (code = '') => post(asking, path, { pending_form: waiting, code });
    // Those that were replaced are of no use.
    expect((await confirm(recoveryCodes[0])).status).toBe(403);
    expect(recoveryCodesOn(await confirm(newCode))).toHaveLength(10);
  });

  test('does not go on with a password that has been replaced meanwhile', async () => {
    const { name, recoveryCodes } = await enrolPasskey();
    const { browser, send } = await lost(name);
    const { secret } = await inviteUser(hub, name);
    await acceptInvitation(hub, secret, 'quiet morning rivers');
    expect((await send(recoveryCodes[0])).headers.location).toBe('/hub/login');
    expect(await isLoggedIn(browser)).toBe(false);
  });

  test('has no codes left once the last passkey is gone', async () => {
    const { name, browser, id } = await enrolPasskey();
    const asking = await openForm(hub, browser, 'hub/account');
    expect((await post(asking, 'hub/account/passkeys/remove', { passkey: id })).status).toBe(303);
    expect((await browser.request(`${hub.url}hub/account`)).body).not.toContain('recovery codes');
    const path = 'hub/account/second-factor/recovery-codes';
    expect((await browser.request(`${hub.url}${path}`)).headers.location).toBe('/hub/account');
    expect((await post(asking, path, {})).status).toBe(404);
    await hub.logIn(name, testPassword);
  });
});

test('secrets and codes stand neither in the log nor readable in the database', async () => {
  const { secret, recoveryCodes } = await enrol();
  const lines = JSON.stringify(hub.logLines);
  expect(lines).not.toContain(secret);
  for (const code of recoveryCodes) expect(lines).not.toContain(code);
  const { readFile, readdir } = await import('node:fs/promises');
  for (const name of await readdir(hub.directory)) {
    if (!name.startsWith('hub.sqlite')) continue;
    const bytes = await readFile(`${hub.directory}/${name}`, 'latin1');
    expect(bytes).not.toContain(secret);
    expect(bytes).not.toContain(recoveryCodes[0]?.replaceAll('-', ''));
  }
});
