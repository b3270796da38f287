import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { changeDatabase } from '../support/hub-database.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { csrfOf } from '../support/passkey-hub.ts';
import {
  acceptInvitation,
  createPasswordHub,
  inviteUser,
  testPassword,
} from '../support/password-hub.ts';
import { submitLogin, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob', 'carol', 'dave', 'mallory'], {
    Authenticator: { lockout_attempts: 4 },
  });
});
afterAll(() => hub[Symbol.asyncDispose]());

const newPassword = 'quiet morning rivers';

async function changePassword(
  browser: FakeBrowser,
  current: string,
  password: string,
  repeated = password,
) {
  const page = await browser.request(`${hub.url}hub/account`);
  return submitTo(browser, page, '/hub/account/password', {
    current_password: current,
    new_password: password,
    repeat_password: repeated,
  });
}

describe('changing the own password', () => {
  test('ends every other login with its tokens, and goes on in this browser', async () => {
    const browser = await hub.logIn('bob', testPassword);
    const other = await hub.logIn('bob', testPassword);
    const answer = await changePassword(browser, testPassword, newPassword);
    expect(answer.status).toBe(303);
    expect((await browser.request(`${hub.url}hub/account`)).body).toContain(
      'Your password is changed.',
    );
    expect((await other.request(`${hub.url}hub/account`)).status).toBe(302);
    await expect(hub.logIn('bob', testPassword)).rejects.toThrow('401');
    await hub.logIn('bob', newPassword);
  });

  test('needs the current password, a good new one, and the same one twice', async () => {
    const browser = await hub.logIn('carol', testPassword);
    const wrong = await changePassword(browser, 'not the password', newPassword);
    expect(wrong.status).toBe(403);
    expect(wrong.body).toContain('This is not your password.');
    const bad = await changePassword(browser, testPassword, 'password1234');
    expect(bad.status).toBe(400);
    expect(bad.body).toContain('This password is too common.');
    const differs = await changePassword(
      browser,
      testPassword,
      newPassword,
      'another one entirely',
    );
    expect(differs.body).toContain('The passwords don’t match.');
    const same = await changePassword(browser, testPassword, testPassword);
    expect(same.body).toContain('This is the password you have now.');
    await hub.logIn('carol', testPassword);
  });

  test('is no way to guess the password past the lock-out', async () => {
    const browser = await hub.logIn('dave', testPassword);
    const statuses: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      statuses.push((await changePassword(browser, `guess number ${round}`, newPassword)).status);
    }
    expect(statuses).toEqual([403, 403, 403, 403, 429, 429]);
    // It is one count with that of the login.
    const login = await submitLogin(new FakeBrowser(), hub.url, 'dave', testPassword);
    expect(login.status).toBe(429);
  });

  test('without a CSRF token is refused, also for a request that no page made', async () => {
    const browser = await hub.logIn('ada', testPassword);
    const body = new URLSearchParams({
      current_password: testPassword,
      new_password: newPassword,
      repeat_password: newPassword,
    }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const url = `${hub.url}hub/account/password`;
    for (const extra of [
      {},
      { 'sec-fetch-mode': 'no-cors' },
      { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
      { origin: 'null' },
    ]) {
      const answer = await browser.request(url, {
        method: 'POST',
        headers: { ...headers, ...extra },
        body,
      });
      expect(answer.status).toBe(403);
    }
    await hub.logIn('ada', testPassword);
  });
});

describe('a password that must be changed', () => {
  /** Gives a password as an administrator would: it must be changed at the next login. */
  async function withTemporaryPassword(name: string): Promise<void> {
    const { secret } = await inviteUser(hub, name);
    await acceptInvitation(hub, secret, testPassword);
    await changeDatabase(hub, (database) => {
      database
        .prepare(
          'update password_credentials set must_change = 1 where user_id = (select id from users where name = ?)',
        )
        .run(name);
    });
  }

  test('is changed before anything else, and then the login goes on', async () => {
    await withTemporaryPassword('erin');
    const browser = new FakeBrowser();
    const answer = await submitLogin(browser, hub.url, 'erin', testPassword, '/hub/token');
    expect(answer.headers.location).toBe('/hub/login/password');
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);

    const page = await browser.request(`${hub.url}hub/login/password`);
    const same = await submitMain(browser, page, {
      new_password: testPassword,
      repeat_password: testPassword,
    });
    expect(same.body).toContain('This is the password you have now.');
    const done = await submitMain(browser, page, {
      new_password: newPassword,
      repeat_password: newPassword,
    });
    expect(done.headers.location).toBe('/hub/token');
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
    expect(
      (await (await hub.logIn('erin', newPassword)).request(`${hub.url}hub/home`)).status,
    ).toBe(200);
  });

  test('is not changed by who does not know it', async () => {
    await withTemporaryPassword('frank');
    const foreignProcess = new FakeBrowser();
    const page = await foreignProcess.request(`${hub.url}hub/login/password`);
    expect(page.headers.location).toBe('/hub/login');
  });
});

describe('the session of a login', () => {
  test('is a new one at each login: an id planted before is worth nothing', async () => {
    const browser = new FakeBrowser();
    await browser.request(`${hub.url}hub/login`);
    const planted = 'A'.repeat(43);
    browser.setCookie('hub-session-id', planted);
    const before = browser.cookie('hub-hub-login')?.value;
    await submitLogin(browser, hub.url, 'ada', testPassword);
    expect(browser.cookie('hub-session-id')?.value).not.toBe(planted);
    const first = browser.cookie('hub-hub-login')?.value;
    expect(first).toBeDefined();
    expect(first).not.toBe(before);

    // Logging in again in the same browser ends the login before.
    const thief = new FakeBrowser();
    thief.setCookie('hub-hub-login', first ?? '', '/hub/');
    expect((await thief.request(`${hub.url}hub/home`)).status).toBe(200);
    await browser.request(`${hub.url}hub/logout`);
    await submitLogin(browser, hub.url, 'ada', testPassword);
    expect((await thief.request(`${hub.url}hub/home`)).status).toBe(302);
  });

  test('has a new key also when another login goes on in the same browser', async () => {
    const browser = await hub.logIn('mallory', testPassword);
    const planted = browser.cookie('hub-hub-login')?.value ?? '';
    const page = await browser.request(`${hub.url}hub/account`);
    const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const login = await browser.request(`${hub.url}hub/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        _csrf: csrf,
        username: 'ada',
        password: testPassword,
      }).toString(),
    });
    expect(login.status, login.body).toBe(302);
    expect((await browser.request(`${hub.url}hub/account`)).body).toContain('ada');

    const thief = new FakeBrowser();
    thief.setCookie('hub-hub-login', planted, '/hub/');
    expect((await thief.request(`${hub.url}hub/account`)).status).toBe(302);
  });

  test('ends by the API, one or all, and not for those without the scope', async () => {
    const one = await hub.logIn('ada', testPassword);
    const two = await hub.logIn('ada', testPassword);
    const listed = await hub.api('/users/ada/sessions', 'admin-service-token');
    const { sessions } = (await listed.json()) as { sessions: { id: string }[] };
    const id = one.cookie('hub-session-id')?.value ?? '';
    expect(sessions.map((session) => session.id)).toContain(id);

    expect(
      (await hub.api(`/users/ada/sessions/${id}`, undefined, { method: 'DELETE' })).status,
    ).toBe(403);
    const wrongUser = await hub.api(`/users/bob/sessions/${id}`, 'admin-service-token', {
      method: 'DELETE',
    });
    expect(wrongUser.status).toBe(404);
    const ended = await hub.api(`/users/ada/sessions/${id}`, 'admin-service-token', {
      method: 'DELETE',
    });
    expect(ended.status).toBe(204);
    expect((await one.request(`${hub.url}hub/home`)).status).toBe(302);
    expect((await two.request(`${hub.url}hub/home`)).status).toBe(200);

    const all = await hub.api('/users/ada/sessions', 'admin-service-token', { method: 'DELETE' });
    expect(all.status).toBe(204);
    expect((await two.request(`${hub.url}hub/home`)).status).toBe(302);
  });
});

describe('logging out', () => {
  test.for(['cross-site', 'same-site'])(
    'is asked about when a %s page made the browser do it',
    async (site) => {
      const browser = await hub.logIn('ada', testPassword);
      const asked = await browser.request(`${hub.url}hub/logout`, {
        headers: { 'sec-fetch-site': site },
      });
      expect(asked.body).toContain('Log out?');
      expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
      await submitMain(browser, asked, {});
      expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);
    },
  );

  test.for(['same-origin', 'none', undefined])(
    'happens at once when Sec-Fetch-Site is %s',
    async (site) => {
      const browser = await hub.logIn('ada', testPassword);
      await browser.request(`${hub.url}hub/logout`, {
        headers: site === undefined ? {} : { 'sec-fetch-site': site },
      });
      expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);
    },
  );
});

test('who may do nothing ends logins and tokens of their own, and makes no token', async () => {
  await using strict = await createPasswordHub(['ada', 'bob'], {
    Hub: { load_roles: [{ name: 'user', scopes: ['(no_scope)'] }] },
  });
  const browser = await strict.logIn('bob', testPassword);
  const other = await strict.logIn('bob', testPassword);
  const made = await strict.api('/users/bob/tokens', 'admin-service-token', {
    method: 'POST',
    body: JSON.stringify({ note: 'Nightly' }),
  });
  const { id, token } = (await made.json()) as { id: string; token: string };
  const url = `${strict.url}hub/token`;
  const page = await browser.follow(await browser.request(url));
  expect(page.body).toContain('Nightly');
  expect(page.body).not.toContain('New token');
  const forged = await browser.request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ _csrf: csrfOf(page), note: 'Forged' }).toString(),
  });
  expect(forged.status).toBe(403);
  // The token itself ends nothing.
  for (const path of ['/users/bob/sessions', `/users/bob/tokens/${id}`])
    expect((await strict.api(path, token, { method: 'DELETE' })).status).toBe(403);
  expect((await submitTo(browser, page, '/hub/token/revoke')).status).toBe(303);
  expect((await strict.api('/user', token)).status).toBe(403);
  const sessions = await browser.request(`${strict.url}hub/account`);
  expect((await submitTo(browser, sessions, '/hub/sessions/end')).status).toBe(303);
  expect((await other.request(`${strict.url}hub/home`)).status).toBe(302);
  const gone = await submitTo(browser, sessions, '/hub/sessions/end');
  expect((await browser.follow(gone)).body).toContain('This login has ended already.');
  expect((await submitTo(browser, sessions, '/hub/sessions/end-others')).status).toBe(303);
});

test('the addresses of tokens and sessions lead to their part of the account, with what fills in the form', async () => {
  await using own = await createPasswordHub(['ada']);
  const ada = await own.logIn('ada', testPassword);
  const locationOf = async (path: string) =>
    (await ada.request(`${own.url}hub/${path}`)).headers.location;
  expect(await locationOf('sessions')).toBe('/hub/account#sessions');
  expect(await locationOf('token?note=Nightly')).toBe('/hub/account?note=Nightly#tokens');
  const page = await ada.open(`${own.url}hub/token?note=Nightly`);
  expect(page.body).toContain('<details class="new" open>');
  const made = await submitTo(ada, page, '/hub/token', { note: 'Nightly' });
  expect(made.headers.location).toBe('/hub/account#tokens');
  expect((await ada.follow(made)).body).toContain('Your new token “Nightly”');
});

describe('linked identities', () => {
  test('are listed and unlinked, but never the last way in', async () => {
    await using mixed = await createPasswordHub(['ada'], {
      Hub: { authenticator_class: ['password', 'dummy'] },
      DummyAuthenticator: { password: 'test' },
      Authenticator: { allow_all: true },
    });
    const visitor = new FakeBrowser();
    const login = await visitor.request(`${mixed.url}hub/login`);
    const answer = await submitTo(
      visitor,
      login,
      '/hub/login',
      { username: 'zoe', password: 'test' },
      'value="dummy"',
    );
    expect(answer.status).toBe(302);
    const page = await visitor.request(`${mixed.url}hub/account`);
    expect(page.body).toContain('Your only login method');
    expect(page.body).not.toContain('name="current_password"');
    const csrf = /name="_csrf" value="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const unlink = (id: string) =>
      visitor.request(`${mixed.url}hub/account/identities/unlink`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ _csrf: csrf, identity_id: id }).toString(),
      });
    const { DatabaseSync } = await import('node:sqlite');
    using database = new DatabaseSync(`${mixed.directory}/hub.sqlite`);
    const ids = () =>
      database
        .prepare("select id from identities where authenticator = 'dummy'")
        .all()
        .map((row) => String(row['id']));
    const [only = ''] = ids();
    const refused = await unlink(only);
    expect(refused.status).toBe(409);
    expect(refused.body).toContain('This is your only login method.');

    await changeDatabase(mixed, (own) =>
      own
        .prepare(
          "insert into identities select 'second', user_id, authenticator, issuer, 'zoe-too', 'Zoë', created_at from identities where id = ?",
        )
        .run(only),
    );
    expect((await visitor.request(`${mixed.url}hub/account`)).body).toContain('Zoë');
    // Both at once: the later one finds that it is the last.
    const statuses = (await Promise.all([unlink(only), unlink('second')])).map(
      ({ status }) => status,
    );
    expect(statuses.sort()).toEqual([303, 409]);
    expect(ids()).toHaveLength(1);
    // Somebody else's link is none of one's own.
    const foreign = database
      .prepare("select id from identities where authenticator = 'password'")
      .get();
    expect((await unlink(String(foreign?.['id']))).status).toBe(404);
  });
});
