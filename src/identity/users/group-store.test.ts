import { expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import {
  describeEachDatabase,
  isQueryWaiting,
  recordAnnouncements,
} from '../../../test/support/databases.ts';
import { until } from '../../../test/support/test-hub.ts';
import { oneOfVersions, type RequireVersion } from '../../platform/crypto/version.ts';
import { createGroupStore, type GroupStore } from './group-store.ts';
import { checkGroupVersion, versionOfGroup } from './group-version-store.ts';
import { createUserStore } from './user-store.ts';

const membersOf = async (groups: GroupStore, name: string) =>
  (await groups.memberNamesByGroup([name])).get(name) ?? [];

describeEachDatabase('the group store', (open) => {
  const openStore = async (...userNames: string[]) => {
    const database = await open();
    const users = createUserStore(database);
    for (const name of userNames) await users.create({ name });
    const announced = recordAnnouncements(database);
    const groups = createGroupStore(database);
    return { database, users, groups, changes: () => announced.length };
  };

  test('finds a created group with its properties', async () => {
    const { groups } = await openStore();
    const team = await createGroup(groups, { name: 'team', properties: { quota: 3 } });
    expect(await groups.getByName('team')).toEqual(team);
    expect(team).toMatchObject({ name: 'team', origin: 'api', properties: { quota: 3 } });
    await expect(groups.getByName('Team')).rejects.toMatchObject({ code: 'not_found' });
    await expect(groups.getByName('Team')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('refuses a taken name and one that cannot be a name', async () => {
    const { groups } = await openStore();
    await createGroup(groups, { name: 'team' });
    await expect(createGroup(groups, { name: 'team' })).rejects.toMatchObject({ code: 'conflict' });
    await expect(createGroup(groups, { name: '' })).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('lists pages in the order of names', async () => {
    const { groups } = await openStore();
    for (const name of ['c', 'a', 'B']) await createGroup(groups, { name });
    const page = await groups.list({ offset: 1, limit: 5 });
    expect(page.items.map(({ name }) => name)).toEqual(['a', 'c']);
    expect(page.total).toBe(3);
    const some = await groups.list({ offset: 0, limit: 5, onlyNames: ['c', 'none'] });
    expect(some).toMatchObject({ total: 1, items: [{ name: 'c' }] });
  });

  test('adds and removes members, twice without harm', async () => {
    const { groups, changes } = await openStore('alice', 'bob', 'carol');
    await createGroup(groups, { name: 'team' });
    await groups.addMembers('team', ['bob', 'alice'], 'api');
    await groups.addMembers('team', ['alice', 'alice'], 'api');
    expect(await membersOf(groups, 'team')).toEqual(['alice', 'bob']);
    await groups.removeMembers('team', ['alice', 'carol', 'nobody']);
    expect(await membersOf(groups, 'team')).toEqual(['bob']);
    expect(await groups.groupNamesOf('bob')).toEqual(['team']);
    expect(await groups.groupNamesOf('alice')).toEqual([]);
    expect(changes()).toBe(4);
  });

  test('tells the groups of many users, and the members of many groups, at once', async () => {
    const { users, groups } = await openStore('alice', 'bob', 'carol');
    for (const name of ['team', 'crew', 'empty']) await createGroup(groups, { name });
    await groups.addMembers('team', ['bob', 'alice'], 'api');
    await groups.addMembers('crew', ['bob', 'carol'], 'api');
    const [bob, alice] = [await users.getByName('bob'), await users.getByName('alice')];
    expect(await groups.groupNamesByUser([bob.id, alice.id, 'nobody'])).toEqual(
      new Map([
        [bob.id, ['crew', 'team']],
        [alice.id, ['team']],
      ]),
    );
    expect(await groups.memberNamesByGroup(['team', 'empty', 'none'])).toEqual(
      new Map([['team', ['alice', 'bob']]]),
    );
  });

  test('adds no user when one of them does not exist, and names that one', async () => {
    const { groups } = await openStore('alice');
    await createGroup(groups, { name: 'team' });
    const adding = groups.addMembers('team', ['alice', 'ghost'], 'api');
    await expect(adding).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('"ghost"'),
    });
    expect(await membersOf(groups, 'team')).toEqual([]);
    const unknown = groups.addMembers('nowhere', ['alice'], 'api');
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
  });

  test('tells all memberships at once', async () => {
    const { groups } = await openStore('alice', 'bob');
    for (const name of ['one', 'two', 'empty']) await createGroup(groups, { name });
    await groups.addMembers('one', ['alice', 'bob'], 'api');
    await groups.addMembers('two', ['bob'], 'api');
    expect(await groups.memberships()).toEqual(
      new Map([
        ['one', new Set(['alice', 'bob'])],
        ['two', new Set(['bob'])],
      ]),
    );
  });

  test('replaces properties as a whole', async () => {
    const { groups } = await openStore();
    await createGroup(groups, { name: 'team', properties: { old: true } });
    await groups.setProperties('team', { new: [1] });
    expect((await groups.getByName('team')).properties).toEqual({ new: [1] });
    const unknown = groups.setProperties('none', {});
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
  });

  test('deletes a group with its memberships and roles', async () => {
    const { database, groups } = await openStore('alice');
    const { kysely } = database;
    await createGroup(groups, { name: 'team' });
    await groups.addMembers('team', ['alice'], 'api');
    await kysely
      .insertInto('roles')
      .values({ name: 'reader', description: '', scopes: '[]', origin: 'api' })
      .execute();
    for (const kind of ['group', 'user']) {
      await kysely
        .insertInto('role_assignments')
        .values({ role_name: 'reader', subject_kind: kind, subject_name: 'team', origin: 'api' })
        .execute();
    }
    expect(await groups.delete('team')).toBe(true);
    expect(await groups.delete('team')).toBe(false);
    expect(await groups.groupNamesOf('alice')).toEqual([]);
    const left = await kysely.selectFrom('role_assignments').select('subject_kind').execute();
    expect(left).toEqual([{ subject_kind: 'user' }]);
  });

  test('synchronises the groups of one origin and leaves those of others', async () => {
    const { groups } = await openStore('alice');
    await createGroup(groups, { name: 'by-hand' });
    await groups.addMembers('by-hand', ['alice'], 'api');
    await groups.syncMembershipsOf('alice', ['staff', 'by-hand'], 'oidc');
    expect(await groups.groupNamesOf('alice')).toEqual(['by-hand', 'staff']);
    expect(await groups.getByName('staff')).toMatchObject({ origin: 'oidc' });
    await groups.syncMembershipsOf('alice', ['board'], 'oidc');
    expect(await groups.groupNamesOf('alice')).toEqual(['board', 'by-hand']);
    const unknown = groups.syncMembershipsOf('ghost', [], 'oidc');
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
  });

  test('announces a synchronisation only when it changed something', async () => {
    const { groups, changes } = await openStore('alice');
    await groups.syncMembershipsOf('alice', ['staff'], 'oidc');
    expect(changes()).toBe(1);
    await groups.syncMembershipsOf('alice', ['staff'], 'oidc');
    expect(changes()).toBe(1);
  });

  test('creates a new group once when several logins bring it at the same time', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `user-${index}`);
    const { groups } = await openStore(...names);
    await Promise.all(names.map((name) => groups.syncMembershipsOf(name, ['b', 'a', 'c'], 'oidc')));
    expect(await membersOf(groups, 'a')).toEqual(names);
    expect((await groups.list({ offset: 0, limit: 10 })).total).toBe(3);
  });

  test('of changes at once, those of members hold and those to one version are one', async () => {
    const { groups } = await openStore('alice', 'bob', 'carol');
    await createGroup(groups, { name: 'team' });
    await Promise.all([
      groups.addMembers('team', ['alice'], 'api'),
      groups.addMembers('team', ['bob'], 'api'),
    ]);
    await Promise.all([
      groups.removeMembers('team', ['alice']),
      groups.addMembers('team', ['carol'], 'api'),
    ]);
    expect(await membersOf(groups, 'team')).toEqual(['bob', 'carol']);

    const read = async () =>
      versionOfGroup(await groups.getByName('team'), await membersOf(groups, 'team'));
    const atOnce = async (...changes: ((drawn: RequireVersion) => Promise<unknown>)[]) => {
      const drawn = oneOfVersions([await read()]);
      const outcomes = await Promise.allSettled(changes.map((change) => change(drawn)));
      const refused = outcomes.filter(({ status }) => status === 'rejected');
      expect([refused.length, changes.length]).toEqual([changes.length - 1, changes.length]);
      for (const each of refused) {
        expect(each).toMatchObject({ reason: { code: 'precondition_failed' } });
      }
    };
    await atOnce(
      (drawn) => groups.setProperties('team', { quota: 1 }, drawn),
      (drawn) => groups.setProperties('team', { quota: 2 }, drawn),
    );
    await atOnce(
      (drawn) => groups.removeMembers('team', ['bob'], drawn),
      (drawn) => groups.addMembers('team', ['alice'], 'api', drawn),
    );
    await atOnce(
      (drawn) => groups.setProperties('team', { quota: 3 }, drawn),
      // A member still, whichever came first: a change that changes nothing keeps the version.
      (drawn) => groups.removeMembers('team', ['carol'], drawn),
    );
    const former = oneOfVersions([await read()]);
    await groups.addMembers('team', ['alice', 'bob', 'carol'], 'api');
    await groups.setProperties('team', { quota: 9 });
    await expect(groups.delete('team', former)).rejects.toMatchObject({
      code: 'precondition_failed',
    });
    expect(await groups.delete('team', oneOfVersions([await read()]))).toBe(true);
  });

  test('removes no member between the check of a version and the change it is for', async () => {
    const { database, groups } = await openStore('alice');
    await createGroup(groups, { name: 'team' });
    await groups.addMembers('team', ['alice'], 'api');
    const drawn = oneOfVersions([versionOfGroup(await groups.getByName('team'), ['alice'])]);
    const ends: string[] = [];
    let removal: Promise<void> | undefined;
    await database.transaction(async (transaction) => {
      await checkGroupVersion(transaction, database, 'team', drawn);
      removal = groups.removeMembers('team', ['alice']).then(() => void ends.push('removal'));
      await until(
        async () => ends.length > 0 || (await isQueryWaiting(database)),
        'the removal is made, or waits',
      );
      ends.push('change');
    });
    await removal;
    expect(ends).toEqual(['change', 'removal']);
  });

  test('brings the groups of the configuration up to date and creates their users', async () => {
    const { groups, users } = await openStore('alice');
    await createGroup(groups, { name: 'team', properties: { old: true } });
    await groups.addMembers('team', ['alice'], 'api');
    await groups.syncConfigured([
      { name: 'team', users: ['bob', 'carol'], properties: { quota: 1 } },
      { name: 'empty', users: [], properties: {} },
    ]);
    expect(await membersOf(groups, 'team')).toEqual(['alice', 'bob', 'carol']);
    expect(await groups.getByName('team')).toMatchObject({
      origin: 'config',
      properties: { quota: 1 },
    });
    expect(await users.getByName('bob')).toMatchObject({ isAdmin: false, isInvited: false });

    await groups.syncConfigured([{ name: 'team', users: ['carol'], properties: {} }]);
    expect(await membersOf(groups, 'team')).toEqual(['alice', 'carol']);
    await expect(groups.getByName('empty')).rejects.toMatchObject({ code: 'not_found' });

    await groups.syncConfigured([]);
    expect(await membersOf(groups, 'team')).toEqual(['alice']);
    expect(await groups.getByName('team')).toMatchObject({ origin: 'api' });
  });

  test('keeps a group that only a role names, with what the API gave it', async () => {
    const { groups } = await openStore();
    await groups.syncConfigured([], ['readers']);
    await groups.setProperties('readers', { quota: 2 });
    const before = await groups.getByName('readers');
    await groups.syncConfigured([], ['readers']);
    expect(await groups.getByName('readers')).toEqual(before);
    await groups.syncConfigured([]);
    await expect(groups.getByName('readers')).rejects.toMatchObject({ code: 'not_found' });
  });
});
