import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { hasPostgres } from '../support/postgres.ts';
import { createTestHub, type TestHubConfig } from '../support/test-hub.ts';

/** Names people who have no account yet, some of them more than once. */
const newcomers: TestHubConfig = {
  Hub: {
    load_groups: [
      { name: 'crew', users: ['ada', 'bob', 'ada'] },
      { name: 'staff', users: ['Ada', 'cleo', 'bob'] },
      { name: 'empty' },
    ],
    load_roles: [
      { name: 'reader', users: ['ada', 'dan'], groups: ['staff', 'later'], scopes: ['list:users'] },
      { name: 'writer', users: ['dan', 'ada'], groups: ['later'], scopes: ['admin:groups'] },
    ],
  },
  Authenticator: { admin_users: ['ada', 'eve'], allowed_users: ['ada', 'bob'] },
};

async function expectDirectory(database_url: string): Promise<void> {
  await using hub = await createTestHub({
    ...newcomers,
    Hub: { ...newcomers.Hub, database_url },
  });
  const list = async (path: string) =>
    (await (await hub.api(path, 'admin-service-token')).json()) as {
      name: string;
      users: string[];
    }[];
  const groups = await list('/groups');
  expect(Object.fromEntries(groups.map(({ name, users }) => [name, users.toSorted()]))).toEqual({
    crew: ['ada', 'bob'],
    staff: ['ada', 'bob', 'cleo'],
    empty: [],
    later: [],
  });
  const names = (await list('/users')).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['ada', 'bob', 'cleo', 'dan', 'eve']));
}

describe('a hub on a new database makes the users and groups of its configuration, each once', () => {
  test('on SQLite', () => expectDirectory('sqlite:hub.sqlite'));

  describe.skipIf(!hasPostgres())('on PostgreSQL', () => {
    const cluster = usePostgres();

    test('alone', async () => expectDirectory(await cluster().createEmptyDatabase()));

    test('together with others that start at the same moment', async () => {
      const database_url = await cluster().createEmptyDatabase();
      await Promise.all([1, 2, 3].map(() => expectDirectory(database_url)));
    });
  });
});
