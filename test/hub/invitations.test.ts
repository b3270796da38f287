import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { changeDatabase } from '../support/hub-database.ts';
import { submitTo } from '../support/pages.ts';
import {
  acceptInvitation,
  createPasswordHub,
  inviteUser,
  testPassword,
} from '../support/password-hub.ts';
import { runCommand } from '../support/run-command.ts';
import { submitForm, submitLogin, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasswordHub();
});
afterAll(() => hub[Symbol.asyncDispose]());

test('an invitation lets a user choose a password and logs them in', async () => {
  const { url, purpose } = await inviteUser(hub, 'carol');
  expect(purpose).toBe('invitation');
  const browser = new FakeBrowser();
  const page = await browser.request(url);
  expect(page.body).toContain('Welcome, carol');
  const answer = await submitForm(browser, page, {
    new_password: testPassword,
    repeat_password: testPassword,
  });
  expect(answer.status).toBe(303);
  expect((await browser.open(`${hub.url}hub/home`)).body).toContain('Hello, carol');
  expect(
    (await (await hub.logIn('carol', testPassword)).request(`${hub.url}hub/home`)).status,
  ).toBe(200);
});

test('a link that is not used is announced before it expires, and made again from the list of those', async () => {
  await using hub = await createPasswordHub(['ada']);
  await inviteUser(hub, 'gina');
  const ada = await hub.logIn('ada', testPassword);
  const shows = async (path: string, text: string) =>
    until(async () => (await ada.request(`${hub.url}hub/admin${path}`)).body.includes(text), text);
  const expiresIn = (days: number) =>
    changeDatabase(hub, (database) => {
      const at = Date.now() + days * 86_400_000;
      database.exec(`update invitations set expires_at = ${at}`);
    });
  await shows('/users?show=invited', '<span class="tag">Invited</span>');
  expect((await ada.request(`${hub.url}hub/admin`)).body).toContain('All well');
  await expiresIn(1);
  await shows('', '<a href="/hub/admin/users?show=invitation_expiring">1 invitation expires');
  await expiresIn(-1);
  await shows('/users/gina', 'Link has expired');
  await shows('/users?show=invitation_expired', 'title="Invitation expired">Expired</span>');
  const list = await ada.request(`${hub.url}hub/admin/users?show=invitation_expired`);
  const asked = await submitTo(ada, list, '/hub/admin/act-on-users', {
    act: 'invite',
    whom: 'matching',
  });
  expect(asked.body).toContain('Make a link for 1 user?');
  const made = await submitTo(ada, asked, '/hub/admin/act-on-users', {});
  expect(made.body).toContain('hub/invitation?secret=');
  await shows('/users/gina', 'Link works until');
  expect((await ada.request(`${hub.url}hub/admin/users/gina`)).body).toContain('made by ada');
});

test('a link works once, also when two use it at the same moment', async () => {
  const { secret } = await inviteUser(hub, 'dave');
  const answers = await Promise.all(
    ['first words here', 'second words here', 'third words here'].map((password) =>
      acceptInvitation(hub, secret, password).catch(() => undefined),
    ),
  );
  const statuses = answers.map((answer) => answer?.status).filter((status) => status === 303);
  expect(statuses).toHaveLength(1);
  const again = await new FakeBrowser().request(`${hub.url}hub/invitation?secret=${secret}`);
  expect(again.status).toBe(404);
  expect(again.body).toContain('This link has expired');
});

test('a password that is not good enough leaves the link as it is', async () => {
  const { secret } = await inviteUser(hub, 'erin');
  expect((await acceptInvitation(hub, secret, 'short')).status).toBe(400);
  expect((await acceptInvitation(hub, secret, 'password1234')).status).toBe(400);
  expect((await acceptInvitation(hub, secret, testPassword)).status).toBe(303);
});

test('a new link ends the one before, and a deleted user ends both', async () => {
  const first = await inviteUser(hub, 'frank');
  const second = await inviteUser(hub, 'frank');
  expect((await new FakeBrowser().request(first.url)).status).toBe(404);
  expect((await new FakeBrowser().request(second.url)).status).toBe(200);
  const gone = await hub.api('/users/frank', 'admin-service-token', { method: 'DELETE' });
  expect(gone.status).toBe(204);
  expect((await new FakeBrowser().request(second.url)).status).toBe(404);
  // The same name again is another account: the old link must not open it.
  await hub.api('/users/frank', 'admin-service-token', { method: 'POST' });
  expect((await new FakeBrowser().request(second.url)).status).toBe(404);
});

test('a reset link replaces the password and ends every login with its tokens', async () => {
  const browser = await hub.logIn('bob', testPassword);
  const { secret, purpose } = await inviteUser(hub, 'bob');
  expect(purpose).toBe('password_reset');
  expect((await acceptInvitation(hub, secret, 'quiet morning rivers')).status).toBe(303);
  expect((await browser.request(`${hub.url}hub/home`)).status).toBe(302);
  await expect(hub.logIn('bob', testPassword)).rejects.toThrow('401');
  await hub.logIn('bob', 'quiet morning rivers');
});

describe('a link ends', () => {
  const works = async (url: string) => (await new FakeBrowser().request(url)).status === 200;
  const chosen = 'quiet morning rivers';

  const ways: Record<string, (name: string) => Promise<unknown>> = {
    'sets it by command': (name) =>
      runCommand(hub.directory, ['user', 'passwd', name, '--password-stdin'], { piped: chosen }),
    async 'changes it themselves'(name) {
      const browser = await hub.logIn(name, testPassword);
      const page = await browser.request(`${hub.url}hub/account`);
      const fields = { current_password: testPassword, new_password: chosen };
      await submitTo(browser, page, '/hub/account/password', {
        ...fields,
        repeat_password: chosen,
      });
    },
  };

  test.each(Object.entries(ways))('once somebody %s', async (_how, choose) => {
    const name = `linked${Object.values(ways).indexOf(choose)}`;
    await acceptInvitation(hub, (await inviteUser(hub, name)).secret, testPassword);
    const { url, secret } = await inviteUser(hub, name);
    expect(await works(url)).toBe(true);
    await choose(name);
    await hub.logIn(name, chosen);
    expect(await works(url)).toBe(false);
    expect(
      (await acceptInvitation(hub, secret, 'of a thief of mail').catch(() => undefined))?.status,
    ).not.toBe(303);
    await hub.logIn(name, chosen);
  });

  test('while the user is suspended, as does a login that has yet to choose a password', async () => {
    const suspension = (method: string) =>
      hub.api('/users/absent/suspension', 'admin-service-token', { method });
    await acceptInvitation(hub, (await inviteUser(hub, 'absent')).secret, testPassword);
    const args = ['user', 'passwd', 'absent', '--password-stdin', '--must-change'];
    await runCommand(hub.directory, args, { piped: testPassword });
    const browser = new FakeBrowser();
    await submitLogin(browser, hub.url, 'absent', testPassword);
    const page = await browser.request(`${hub.url}hub/login/password`);
    expect(page.status).toBe(200);
    const { url, secret } = await inviteUser(hub, 'absent');
    expect((await suspension('PUT')).status).toBe(204);
    expect(await works(url)).toBe(false);
    await acceptInvitation(hub, secret, chosen).catch(() => undefined);
    const passwords = { new_password: chosen, repeat_password: chosen };
    expect((await submitForm(browser, page, passwords)).headers.location).toBe('/hub/login');
    expect((await suspension('DELETE')).status).toBe(204);
    await expect(hub.logIn('absent', chosen)).rejects.toThrow('401');
    expect(await works(url)).toBe(true);
  });

  test('once the user is renamed', async () => {
    const { url } = await inviteUser(hub, 'former');
    const body = JSON.stringify({ name: 'renamed' });
    const answer = await hub.api('/users/former', 'admin-service-token', { method: 'PATCH', body });
    expect(answer.status).toBe(200);
    expect(await works(url)).toBe(false);
  });
});

test('a link can be taken back, and only by who may administer the user', async () => {
  const { url } = await inviteUser(hub, 'gina');
  const path = '/users/gina/invitation';
  expect((await hub.api(path, undefined, { method: 'DELETE' })).status).toBe(403);
  expect((await hub.api(path, undefined, { method: 'POST' })).status).toBe(403);
  expect((await hub.api(path, 'admin-service-token', { method: 'DELETE' })).status).toBe(204);
  expect((await new FakeBrowser().request(url)).status).toBe(404);
});

test('no user makes a link for an account that may do more than they may', async () => {
  await using limited = await createPasswordHub(['ada'], {
    Hub: {
      load_roles: [
        { name: 'people', scopes: ['admin:users', 'admin-ui'], services: ['people'] },
        { name: 'user', scopes: ['self'] },
      ],
      services: [{ name: 'people', api_token: 'people-service-token' }],
    },
  });
  const answer = await limited.api('/users/ada/invitation', 'people-service-token', {
    method: 'POST',
  });
  expect(answer.status).toBe(403);
});

test('the secret of a link stands in no log line', async () => {
  const { url, secret } = await inviteUser(hub, 'henry');
  await new FakeBrowser().request(url);
  await acceptInvitation(hub, secret, testPassword);
  expect(JSON.stringify(hub.logLines)).not.toContain(secret);
});
