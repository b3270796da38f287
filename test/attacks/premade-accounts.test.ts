import { describe, expect, test } from 'vitest';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import { adminToken } from '../support/server-hub.ts';
import { createTestHub, submitForm, type TestHub } from '../support/test-hub.ts';

/** Logs in by one of several authenticators, all of them forms; what the hub makes of it. */
async function logIn(hub: TestHub, authenticator: string, username: string, password = 'test') {
  const browser = new FakeBrowser();
  const page = await browser.request(`${hub.url}hub/login`);
  const forms = page.body.match(/<form[\s\S]*?<\/form>/g) ?? [];
  const form = forms.find((each) => each.includes(`value="${authenticator}"`));
  if (form === undefined) throw new Error(`no form of ${authenticator} on the login page`);
  const answer = await submitForm(browser, { ...page, body: form }, { username, password });
  return answer.status;
}

async function create(hub: TestHub, body: unknown) {
  const answer = await hub.api('/users', adminToken, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  return { status: answer.status, text: await answer.text() };
}

/** `club` is a provider at which people choose their names. */
const club = { class: 'dummy', name: 'club' };
const work = { class: 'dummy', name: 'work' };

describe('an account that was made before its owner came', () => {
  test('is not for those who come under its name by another authenticator', async () => {
    await using hub = await createTestHub({
      Hub: {
        authenticator_class: ['password', club],
        load_groups: [{ name: 'staff', users: ['gil'] }],
      },
      PasswordAuthenticator: {},
      Authenticator: { allow_all: false, admin_users: ['ada'], allowed_users: ['al'] },
    });
    await create(hub, { usernames: ['bob'] });
    const { secret } = await inviteUser(hub, 'eve');
    for (const name of ['ada', 'al', 'bob', 'eve', 'gil', 'stranger']) {
      expect(await logIn(hub, 'club', name), name).toBe(403);
    }
    expect((await acceptInvitation(hub, secret, testPassword)).status).toBe(303);
    expect(await logIn(hub, 'password', 'eve', testPassword)).toBe(302);
  });

  test('is not for them after it was deleted either, nor where all may log in', async () => {
    await using hub = await createTestHub({
      Hub: {
        authenticator_class: ['password', club],
        load_roles: [{ name: 'lead', scopes: ['admin:users'], users: ['lea'] }],
      },
      PasswordAuthenticator: {},
      Authenticator: { allow_all: true, admin_users: ['ada'] },
    });
    for (const name of ['ada', 'lea']) {
      const deleted = await hub.api(`/users/${name}`, adminToken, { method: 'DELETE' });
      expect(deleted.status).toBe(204);
      expect(await logIn(hub, 'club', name), name).toBe(403);
    }
    expect(await logIn(hub, 'club', 'gus')).toBe(302);
  });

  test('is for those of the authenticator that it was made for', async () => {
    await using hub = await createTestHub({
      Hub: { authenticator_class: ['password', work, club] },
      PasswordAuthenticator: {},
      Authenticator: { allow_all: false, admin_users: ['ada'], account_authenticator: 'work' },
    });
    await create(hub, { usernames: ['bob'] });
    await create(hub, { usernames: ['cy'], authenticator: 'club' });
    for (const name of ['ada', 'bob']) {
      expect(await logIn(hub, 'club', name), name).toBe(403);
      expect(await logIn(hub, 'work', name), name).toBe(302);
    }
    expect(await logIn(hub, 'work', 'cy')).toBe(403);
    expect(await logIn(hub, 'club', 'cy')).toBe(302);
    const unknown = await create(hub, { usernames: ['dan'], authenticator: 'nowhere' });
    expect(unknown.status).toBe(400);
    expect(unknown.text).toContain('There is no authenticator');
  });

  test('keeps to the authenticator it was made for when another one is added', async () => {
    const config = (authenticators: unknown) => ({
      Hub: { authenticator_class: authenticators },
      PasswordAuthenticator: {},
      Authenticator: { allow_all: false },
    });
    await using hub = await createTestHub(config([work]));
    await create(hub, { usernames: ['bob', 'cy'] });
    await hub.reload(config(['password', work, club]));
    expect(await logIn(hub, 'club', 'bob')).toBe(403);
    expect(await logIn(hub, 'work', 'bob')).toBe(302);
    // What it was made for is gone: then it is for those for whom accounts are made now.
    await hub.reload({
      ...config([club, { class: 'dummy', name: 'third' }]),
      Authenticator: { allow_all: false, account_authenticator: 'third' },
    });
    expect(await logIn(hub, 'club', 'cy')).toBe(403);
    expect(await logIn(hub, 'third', 'cy')).toBe(302);
  });

  test('is for the first to log in where there is one authenticator only', async () => {
    await using hub = await createTestHub({ Authenticator: { allow_all: false } });
    await create(hub, { usernames: ['bob'] });
    expect(await logIn(hub, 'dummy', 'bob')).toBe(302);
  });
});

describe('a configuration in which it is not clear whose accounts are made', () => {
  test('is refused, and says what to choose', async () => {
    for (const given of [
      { Authenticator: { admin_users: ['ada'] } },
      { Authenticator: { allowed_users: ['ada'] } },
      { Hub: { load_groups: [{ name: 'staff', users: ['ada'] }] } },
      { Hub: { load_roles: [{ name: 'lead', users: ['ada'] }] } },
      { Authenticator: { account_authenticator: 'nowhere' } },
    ] as { Hub?: object; Authenticator?: object }[]) {
      await using folder = await createHubFolder({
        ...given,
        Hub: { ...given.Hub, authenticator_class: [work, club] },
        DummyAuthenticator: { password: 'test' },
      });
      const checked = loadCheckedConfig({ env: {}, directory: folder.directory });
      await expect(checked, JSON.stringify(given)).rejects.toMatchObject({
        problems: [
          {
            path: 'Authenticator.account_authenticator',
            message: expect.stringMatching(/"work" or "club"/),
          },
        ],
      });
    }
  });

  test('lets no account be made without saying for which', async () => {
    await using hub = await createTestHub({ Hub: { authenticator_class: [work, club] } });
    const refused = await create(hub, { usernames: ['bob'] });
    expect(refused.status).toBe(400);
    expect(refused.text).toContain('account_authenticator');
    expect((await create(hub, { usernames: ['bob'], authenticator: 'club' })).status).toBe(201);
  });
});
