import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { createTestHub, submitForm } from '../support/test-hub.ts';

test('the first administrator is logged in, and has the next steps on home until they are dismissed', async () => {
  await using hub = await createTestHub({
    PasswordAuthenticator: {},
    Hub: { authenticator_class: 'password', default_url: '/hub/services' },
    Authenticator: { allow_all: false },
  });
  const ada = new FakeBrowser();
  const page = await ada.request(hub.hub.setUpUrl ?? '');
  // A cookie that another page of the site has planted is no login afterwards.
  ada.setCookie('hub-hub-login', 'planted', '/hub/');
  const typed = { name: 'ada', new_password: testPassword, repeat_password: testPassword };
  const done = await submitForm(ada, page, typed);
  expect([done.status, done.headers.location]).toEqual([303, '/hub/home']);
  expect(ada.cookieHeader(`${hub.url}hub/home`)).not.toContain('planted');

  const again = await submitForm(new FakeBrowser(), page, typed);
  expect(again.status).toBe(403);
  expect(again.headers['set-cookie'] ?? []).toEqual([]);

  const home = await ada.request(`${hub.url}hub/home`);
  for (const text of ['Next steps', '/hub/admin/new-users', 'hub.config.json', 'TLS']) {
    expect(home.body).toContain(text);
  }

  const { secret } = await inviteUser(hub, 'grace', { isAdmin: true });
  const grace = new FakeBrowser();
  await acceptInvitation(hub, secret, testPassword, grace);
  const other = await grace.request(`${hub.url}hub/home`);
  expect(other.body).not.toContain('Next steps');
  const csrf = /name="csrf-token" content="([^"]*)"/.exec(other.body)?.[1] ?? '';
  const dismiss = '/hub/home/dismiss-first-run';
  const form = `<form method="post" action="${dismiss}"><input type="hidden" name="_csrf" value="${csrf}"></form>`;
  expect((await submitTo(grace, { ...other, body: form }, dismiss)).status).toBe(303);
  expect((await ada.request(home.url)).body).toContain('Next steps');

  expect((await submitTo(ada, home, dismiss)).headers.location).toBe('/hub/home');
  expect((await ada.request(home.url)).body).not.toContain('Next steps');
});

describe.skipIf(!hasPostgres())('the link of the first administrator', () => {
  const cluster = usePostgres();

  test('used at two hubs in the same moment makes one', async () => {
    const config = {
      PasswordAuthenticator: {},
      Hub: { authenticator_class: 'password', database_url: await cluster().createDatabase() },
      Authenticator: { allow_all: false },
    };
    await using first = await createTestHub(config);
    await using second = await createTestHub(config);
    // The link of the second one ended that of the first.
    const { search } = new URL(second.hub.setUpUrl ?? '');
    const forms = await Promise.all(
      [first, second].map(async (hub) => {
        const browser = new FakeBrowser();
        return { browser, page: await browser.request(`${hub.url}hub/set-up${search}`) };
      }),
    );
    const password = 'quiet morning rivers';
    const answers = await Promise.all(
      forms.map(({ browser, page }, index) =>
        submitForm(browser, page, {
          name: ['ada', 'mallory'][index] ?? '',
          new_password: password,
          repeat_password: password,
        }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 403]);
    const users = (await (await first.api('/users', adminToken)).json()) as { admin: boolean }[];
    expect(users.filter(({ admin }) => admin)).toHaveLength(1);
  });
});
