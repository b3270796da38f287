import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { createTestHub, submitForm } from '../support/test-hub.ts';

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
