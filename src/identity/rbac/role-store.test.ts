import { describe, expect, test } from 'vitest';
import { describeEachDatabase, recordAnnouncements } from '../../../test/support/databases.ts';
import { lastPage } from '../../platform/store/page-edge.ts';
import { defaultRoles, implicitRoleNames, type Role, type RoleAssignment } from './role.ts';
import { createRoleStore, holderKey } from './role-store.ts';

const role = (name: string, scopes: readonly string[] = ['read:hub']): Role => ({
  name,
  description: `The role ${name}.`,
  scopes,
  origin: 'api',
});

const given = (
  roleName: string,
  subjectKind: RoleAssignment['subjectKind'],
  subjectName: string,
  origin = 'api',
): RoleAssignment => ({ roleName, subjectKind, subjectName, origin });

const names = (roles: readonly Role[]) => roles.map(({ name }) => name);

describe('implicitRoleNames', () => {
  test.each([
    [{ kind: 'user', name: 'a', isAdmin: false, groupNames: [] }, ['user']],
    [{ kind: 'user', name: 'a', isAdmin: true, groupNames: [] }, ['user', 'admin']],
    [{ kind: 'service', name: 's', isAdmin: false }, []],
    [{ kind: 'service', name: 's', isAdmin: true }, ['admin']],
    [{ kind: 'group', name: 'g' }, []],
  ] as const)('of %o are %j', (holder, expected) => {
    expect(implicitRoleNames(holder)).toEqual(expected);
  });
});

describeEachDatabase('role store', (open) => {
  test('keeps a role as it was saved, and replaces it', async () => {
    const roles = createRoleStore(await open());
    await roles.apply({ save: [role('reader', ['read:users!user=o"brien', 'read:hub'])] });
    expect(await roles.getByName('reader')).toEqual(
      role('reader', ['read:users!user=o"brien', 'read:hub']),
    );
    await roles.apply({ save: [role('reader', [])] });
    expect(await roles.list()).toEqual([role('reader', [])]);
    expect(await roles.findByName('writer')).toBeUndefined();
  });

  test('deletes a role with its assignments', async () => {
    const roles = createRoleStore(await open());
    await roles.apply({ save: [role('reader'), defaultRoles.user] });
    await roles.apply({ assign: [given('reader', 'user', 'alice')] });
    await roles.apply({ remove: ['reader'] });
    expect(names(await roles.list())).toEqual(['user']);
    expect(await roles.listAssignments()).toEqual([]);
  });

  test('counts who holds each role', async () => {
    const roles = createRoleStore(await open());
    expect(await roles.countHolders()).toEqual(new Map());
    await roles.apply({ save: [role('reader'), role('writer'), role('unused')] });
    await roles.apply({
      assign: [
        given('reader', 'user', 'alice'),
        given('reader', 'group', 'alice'),
        given('writer', 'service', 'app'),
      ],
    });
    expect(await roles.countHolders()).toEqual(
      new Map([
        ['reader', 2],
        ['writer', 1],
      ]),
    );
  });

  test('lists a page of those who hold a role', async () => {
    const roles = createRoleStore(await open());
    await roles.apply({ save: [role('reader'), role('writer')] });
    const grantedScopes = ['ada', 'bob', 'cleo'].map((name) => given('reader', 'user', name));
    const team = given('reader', 'group', 'team');
    await roles.apply({
      assign: [...grantedScopes.toReversed(), team, given('writer', 'user', 'ann')],
    });
    const page = await roles.listHolders('reader', {
      limit: 2,
      edge: { side: 'after', key: holderKey(team) },
    });
    expect(page).toEqual({
      items: grantedScopes.slice(0, 2),
      total: 4,
      isFirst: false,
      isLast: false,
    });
    const first = await roles.listHolders('reader', { limit: 1 });
    expect(first).toEqual({ items: [team], total: 4, isFirst: true, isLast: false });
    const last = await roles.listHolders('reader', { limit: 2, edge: lastPage });
    expect(last).toEqual({ items: grantedScopes.slice(1), total: 4, isFirst: false, isLast: true });
  });

  test('finds the first holders of several roles at once', async () => {
    const roles = createRoleStore(await open());
    const readers = ['a', 'b', 'c'].map((name) => given('reader', 'user', name));
    const team = given('reader', 'group', 'team');
    const writer = given('writer', 'service', 's');
    await roles.apply({ save: [role('reader'), role('writer'), role('other')] });
    await roles.apply({ assign: [...readers, team, writer, given('other', 'user', 'a')] });
    expect(await roles.firstHolders(['writer', 'reader', 'unknown'], 2)).toEqual([
      team,
      readers[0],
      writer,
    ]);
    expect(await roles.firstHolders([], 2)).toEqual([]);
  });

  test('goes on in the list of holders where a page ended, whoever comes or goes', async () => {
    const roles = createRoleStore(await open());
    const grantedScopes = [
      given('reader', 'group', 'b'),
      given('reader', 'group', 'd:e'),
      given('reader', 'service', 'a'),
      given('reader', 'user', 'a'),
      given('reader', 'user', 'c'),
    ];
    await roles.apply({ save: [role('reader'), role('writer')], assign: grantedScopes });
    const other = given('writer', 'service', 'b');
    await roles.apply({ assign: [other] });
    const [, second, third, fourth, fifth] = grantedScopes as [
      RoleAssignment,
      RoleAssignment,
      RoleAssignment,
      RoleAssignment,
      RoleAssignment,
    ];
    const at = (side: 'after' | 'before', holder: RoleAssignment) =>
      roles.listHolders('reader', { limit: 2, edge: { side, key: holderKey(holder) } });
    expect(await at('after', second)).toEqual({
      items: grantedScopes.slice(2, 4),
      total: 5,
      isFirst: false,
      isLast: false,
    });
    expect(await at('before', fifth)).toMatchObject({
      items: grantedScopes.slice(2, 4),
      isFirst: false,
    });
    expect(await at('before', fourth)).toMatchObject({
      items: grantedScopes.slice(1, 3),
      isFirst: false,
    });
    const first = { items: grantedScopes.slice(0, 2), isFirst: true, isLast: false };
    expect(await at('before', third)).toMatchObject(first);
    expect(await at('before', second)).toMatchObject(first);
    await roles.apply({
      revoke: grantedScopes.slice(0, 2),
      assign: [given('reader', 'group', 'a')],
    });
    expect(await at('after', second)).toMatchObject({
      items: grantedScopes.slice(2, 4),
      isLast: false,
    });
    expect(await at('after', fourth)).toMatchObject({ items: [fifth], total: 4, isLast: true });
    // Nothing is after it any more.
    expect(await at('after', fifth)).toMatchObject({ items: [fourth, fifth], isLast: true });
  });

  test('assigns known roles only, once, the last origin counting', async () => {
    const roles = createRoleStore(await open());
    await expect(roles.apply({ assign: [given('reader', 'user', 'alice')] })).rejects.toThrow();
    await roles.apply({ save: [role('reader')] });
    await roles.apply({ assign: [given('reader', 'user', 'alice')] });
    await roles.apply({ assign: [given('reader', 'user', 'alice', 'config')] });
    expect(await roles.listAssignments()).toEqual([given('reader', 'user', 'alice', 'config')]);
  });

  test('names the roles of many holders as of each alone', async () => {
    const roles = createRoleStore(await open());
    await roles.apply({ save: [defaultRoles.user, role('reader'), role('a-writer')] });
    await roles.apply({
      assign: [
        given('reader', 'user', 'alice'),
        given('a-writer', 'group', 'team'),
        given('reader', 'group', 'alice'),
        given('reader', 'service', 'bob'),
      ],
    });
    const users = [
      { kind: 'user', name: 'alice', isAdmin: false, groupNames: ['team', 'other'] },
      { kind: 'user', name: 'bob', isAdmin: true, groupNames: [] },
    ] as const;
    const groups = [
      { kind: 'group', name: 'team' },
      { kind: 'group', name: 'other' },
    ] as const;
    expect([...(await roles.namesGrantedTo(users))]).toEqual([
      ['alice', ['a-writer', 'reader', 'user']],
      ['bob', ['admin', 'user']],
    ]);
    expect([...(await roles.namesGrantedTo(groups))]).toEqual([
      ['team', ['a-writer']],
      ['other', []],
    ]);
    for (const holders of [users, groups]) {
      for (const [index, [, grantedScopes]] of [
        ...(await roles.namesGrantedTo(holders)),
      ].entries()) {
        const holder = holders[index];
        if (holder !== undefined)
          expect(names(await roles.heldBy(holder)).sort()).toEqual(grantedScopes);
      }
    }
  });

  test('revokes exactly one assignment', async () => {
    const roles = createRoleStore(await open());
    await roles.apply({ save: [role('reader')] });
    await roles.apply({ assign: [given('reader', 'user', 'alice')] });
    await roles.apply({ assign: [given('reader', 'group', 'alice')] });
    await roles.apply({ assign: [given('reader', 'user', 'bob')] });
    await roles.apply({
      revoke: [{ roleName: 'reader', subjectKind: 'user', subjectName: 'alice' }],
    });
    expect(await roles.listAssignments()).toEqual([
      given('reader', 'group', 'alice'),
      given('reader', 'user', 'bob'),
    ]);
  });

  test('lists assignments by role and by subject', async () => {
    const roles = createRoleStore(await open());
    await roles.apply({ save: [role('reader')] });
    await roles.apply({ save: [role('writer')] });
    await roles.apply({ assign: [given('reader', 'user', 'alice')] });
    await roles.apply({ assign: [given('writer', 'group', 'alice')] });
    expect(await roles.listAssignments({ roleName: 'reader' })).toEqual([
      given('reader', 'user', 'alice'),
    ]);
    expect(await roles.listAssignments({ subjectKind: 'group', subjectName: 'alice' })).toEqual([
      given('writer', 'group', 'alice'),
    ]);
  });

  test('tells the roles held directly, through groups and implicitly', async () => {
    const roles = createRoleStore(await open());
    for (const name of ['by-user', 'by-group', 'by-service', 'by-other'])
      await roles.apply({ save: [role(name)] });
    await roles.apply({ assign: [given('by-user', 'user', 'alice')] });
    await roles.apply({ assign: [given('by-group', 'group', 'staff')] });
    await roles.apply({ assign: [given('by-group', 'user', 'alice')] });
    await roles.apply({ assign: [given('by-service', 'service', 'alice')] });
    await roles.apply({ assign: [given('by-other', 'user', 'bob')] });
    await roles.apply({ assign: [given('by-other', 'group', 'ops')] });

    const alice = { kind: 'user', name: 'alice', isAdmin: false } as const;
    expect(names(await roles.heldBy({ ...alice, groupNames: ['staff', 'chess'] }))).toEqual([
      'by-group',
      'by-user',
      'user',
    ]);
    expect(names(await roles.heldBy({ kind: 'service', name: 'alice', isAdmin: false }))).toEqual([
      'by-service',
    ]);
    expect(names(await roles.heldBy({ kind: 'group', name: 'ops' }))).toEqual(['by-other']);
    expect(await roles.heldBy({ kind: 'group', name: 'alice' })).toEqual([]);
  });

  test('a stored default role takes the place of the built-in one', async () => {
    const roles = createRoleStore(await open());
    const admin = { kind: 'user', name: 'root', isAdmin: true, groupNames: [] } as const;
    expect(await roles.heldBy(admin)).toEqual([defaultRoles.user, defaultRoles.admin]);
    const user = { ...defaultRoles.user, scopes: ['self', 'access:services'] };
    await roles.apply({ save: [user] });
    expect(await roles.heldBy(admin)).toEqual([user, defaultRoles.admin]);
  });

  test('gives a user the roles a provider tells, and leaves all others alone', async () => {
    const roles = createRoleStore(await open());
    for (const name of ['one', 'two', 'three']) await roles.apply({ save: [role(name)] });
    await roles.apply({ assign: [given('one', 'user', 'alice', 'oidc')] });
    await roles.apply({ assign: [given('two', 'user', 'alice', 'config')] });
    await roles.apply({ assign: [given('one', 'user', 'bob', 'oidc')] });
    expect(await roles.syncRolesOfUser('alice', ['two', 'three', 'four'], 'oidc')).toEqual([
      'four',
    ]);
    expect(await roles.listAssignments({ subjectName: 'alice' })).toEqual([
      given('three', 'user', 'alice', 'oidc'),
      given('two', 'user', 'alice', 'config'),
    ]);
    expect(await roles.listAssignments({ subjectName: 'bob' })).toHaveLength(1);
  });

  test('makes changes together or not at all', async () => {
    const roles = createRoleStore(await open());
    await expect(
      roles.apply({
        save: [role('reader')],
        remove: [],
        assign: [given('unknown', 'user', 'alice')],
        revoke: [],
      }),
    ).rejects.toThrow();
    expect(await roles.list()).toEqual([]);
  });

  test('announces changes, and only those', async () => {
    const database = await open();
    const roles = createRoleStore(database);
    const announcements = recordAnnouncements(database);
    await roles.syncRolesOfUser('alice', [], 'oidc');
    expect(announcements).toEqual([]);
    await roles.apply({ save: [role('reader')] });
    expect(announcements).not.toEqual([]);
  });
});
