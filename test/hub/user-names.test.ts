import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { ConfigError } from '../../src/platform/errors.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitMain } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { runCommand } from '../support/run-command.ts';
import { adminToken } from '../support/server-hub.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

const send = (hub: TestHub, method: string, path: string, body: unknown = {}) =>
  hub.api(path, adminToken, { method, body: JSON.stringify(body) });

/** Runs `hub …` on the configuration of a hub; the exit code with what it said. */
async function run(hub: TestHub, ...args: string[]): Promise<string> {
  const piped = testPassword;
  const { exitCode, stdout, stderr } = await runCommand(hub.directory, args, { piped });
  return `${exitCode} ${stdout}${stderr}`;
}

describe('Authenticator.username_pattern and username_map', () => {
  let hub: TestHub;
  const notAllowed = 'User names of this form are not allowed here.';

  beforeAll(async () => {
    hub = await createPasswordHub(['ada'], {
      Authenticator: { username_pattern: '[a-m].*', username_map: { 'ben.long': 'ben' } },
    });
  });
  afterAll(() => hub?.[Symbol.asyncDispose]());

  async function expectRefused(answer: Response): Promise<void> {
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as { message: string }).message).toContain(notAllowed);
  }

  test('hold for users made by the API: one bad name, and none is made', async () => {
    await expectRefused(await send(hub, 'POST', '/users', { usernames: ['bea', 'zoe'] }));
    expect((await hub.api('/users/bea', adminToken)).status).toBe(404);
    await expectRefused(await send(hub, 'POST', '/users/zoe'));
    const mapped = await send(hub, 'POST', '/users/Ben.Long');
    expect(await mapped.json()).toMatchObject({ name: 'ben' });
  });

  test('hold for a new name', async () => {
    await send(hub, 'POST', '/users/carl');
    await expectRefused(await send(hub, 'PATCH', '/users/carl', { name: 'walt' }));
    const renamed = await send(hub, 'PATCH', '/users/carl', { name: 'Dora' });
    expect(await renamed.json()).toMatchObject({ name: 'dora' });
  });

  test('hold on the page of the administrator', async () => {
    const ada = await hub.logIn('ada', testPassword);
    const form = await ada.request(`${hub.url}hub/admin/new-users`);
    const answer = await submitMain(ada, form, { people: 'zoe' });
    expect([answer.status, answer.body.includes(notAllowed)]).toEqual([200, true]);
  });

  test('hold on the command line, which can still delete who was there before', async () => {
    expect(await run(hub, 'user', 'add', 'zoe', '--no-password')).toMatch(
      /^1 [\s\S]*not allowed here/,
    );
    await send(hub, 'POST', '/users/eve');
    await hub.reload({
      PasswordAuthenticator: {},
      Hub: { authenticator_class: 'password' },
      Authenticator: { allow_all: false, username_pattern: '[a-d].*' },
    });
    await expectRefused(await send(hub, 'POST', '/users/fred'));
    expect(await run(hub, 'user', 'delete', 'eve', '--yes')).toBe('0 Deleted eve.\n');
  });
});

test('the set-up link creates no user whose name the pattern refuses', async () => {
  await using hub = await createTestHub({
    Hub: { authenticator_class: 'password' },
    PasswordAuthenticator: {},
    Authenticator: { allow_all: false, username_pattern: '[a-m]+' },
  });
  const browser = new FakeBrowser();
  const page = await browser.request(hub.hub.setUpUrl ?? '');
  const passwords = { new_password: testPassword, repeat_password: testPassword };
  const refused = await submitForm(browser, page, { name: 'zoe', ...passwords });
  expect([refused.status, refused.body.includes('not allowed here')]).toEqual([400, true]);
  expect((await submitForm(browser, page, { name: ' Abel ', ...passwords })).status).toBe(303);
  expect(await (await hub.api('/users/abel', adminToken)).json()).toMatchObject({ admin: true });
});

test('a configuration that names a user whom its own pattern refuses is refused', async () => {
  await using hub = await createTestHub();
  const refusal = hub.reload({
    Authenticator: { username_pattern: '[a-m]+', allowed_users: ['abel', 'zoe'], allow_all: false },
    Hub: {
      load_groups: [{ name: 'staff', users: ['walt'] }],
      load_roles: [{ name: 'reader', users: ['xavier'], scopes: ['list:users'] }],
    },
  });
  const error = await refusal.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as ConfigError).problems.map(({ path }) => path).toSorted()).toEqual([
    'Authenticator.allowed_users[1]',
    'Hub.load_groups[0].users[0]',
    'Hub.load_roles[0].users[0]',
  ]);
  // As `hub check` sees it.
  const file = join(hub.directory, 'hub.config.json');
  await expect(loadCheckedConfig({ file, env: {} })).rejects.toThrow(ConfigError);
});

test('those who may log in by the configuration are there before they do', async () => {
  await using hub = await createTestHub({
    Authenticator: { allow_all: false, allowed_users: ['Bea', 'carl'], admin_users: ['ada'] },
  });
  const users = async () => {
    const answer = await hub.api('/users', adminToken);
    const list = (await answer.json()) as { name: string; admin: boolean }[];
    return list.map(({ name, admin }) => `${name}${admin ? ' (admin)' : ''}`).toSorted();
  };
  expect(await users()).toEqual(['ada (admin)', 'bea', 'carl']);
  expect((await send(hub, 'POST', '/users/bea/tokens')).status).toBe(201);

  const many = Array.from({ length: 2_500 }, (_, index) => `user-${index}`);
  await hub.reload({ Authenticator: { allow_all: false, allowed_users: ['carl', ...many] } });
  expect((await hub.api('/users/user-2499', adminToken)).status).toBe(200);
  await hub.logIn('carl');
  // The account stays, and lets nobody in who is no longer listed.
  expect(await users()).toContain('bea');
  await expect(hub.logIn('bea')).rejects.toThrow('403');
});
