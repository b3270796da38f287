import { expect, test } from 'vitest';
import type { AnnouncedSubject } from '../../src/platform/store/change-subject.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { adminToken, callApi, createUsers, tokenOf } from '../support/server-hub.ts';
import { watchStatements } from '../support/statements.ts';
import { createTestHub, until } from '../support/test-hub.ts';

/** Tables that are read again by those alone who depend on them. */
const tables = ['notices', 'runtime_services', 'instances'] as const;

test('three people who come into a group wake no one but who depends on groups', async () => {
  await using hub = await createTestHub({
    Hub: {
      load_groups: [{ name: 'crew', users: [] }],
      load_roles: [{ name: 'crew', scopes: ['read:users:name'], groups: ['crew'] }],
    },
  });
  await createUsers(hub, 'ann', 'bob', 'cleo');
  const token = await tokenOf(hub, 'ann');
  const mayReadOf = async () => (await callApi(hub, token, 'GET', '/users/bob')).status;
  expect(await mayReadOf()).toBe(404);

  using watch = watchStatements();
  const readDuring = async (work: () => Promise<unknown>) => {
    const statements = await watch.during(work);
    return tables.filter((table) => statements.some((each) => each.includes(`from "${table}"`)));
  };
  const read = await readDuring(async () => {
    const users = ['ann', 'bob', 'cleo'];
    const added = await callApi(hub, adminToken, 'POST', '/groups/crew/users', { users });
    expect(added.status).toBe(200);
    // What depends on it is looked up again at once.
    expect(await mayReadOf()).toBe(200);
  });
  expect(read).toEqual([]);

  // Those that were not woken are by what they depend on.
  const service = { url: 'http://127.0.0.1:9/' };
  const ofService = await readDuring(() =>
    callApi(hub, adminToken, 'POST', '/services/s', service),
  );
  expect(ofService).toContain('runtime_services');
  expect(ofService).not.toContain('notices');
  await until(
    async () =>
      (
        await readDuring(() => callApi(hub, adminToken, 'PUT', '/announcement', { text: 'Hello.' }))
      ).includes('notices'),
    'announcements are read again',
  );
});

test('no change is announced without a subject, and nobody but the database reports a loss', () => {
  const announce = (_database: Pick<HubDatabase, 'announceChange'>) => {
    // @ts-expect-error Everybody would look again.
    _database.announceChange();
    // @ts-expect-error Only changes that were missed may concern everything.
    _database.announceChange({ kind: 'all' });
    const subject: AnnouncedSubject = { kind: 'groups_changed' };
    _database.announceChange(subject);
  };
  expect(announce).toBeTypeOf('function');
});
