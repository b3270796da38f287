import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createUserStore } from '../users/user-store.ts';
import type { Role } from './role.ts';
import { createRoleChangeStore, type RoleMembers } from './role-change-store.ts';
import { createRoleStore } from './role-store.ts';

const reader: Role = {
  name: 'reader',
  description: 'Reads.',
  scopes: ['read:hub'],
  origin: 'api',
};
const to = (members: Partial<RoleMembers>): RoleMembers => ({
  user: [],
  group: [],
  service: [],
  ...members,
});

describeEachDatabase('role change store', (open) => {
  test('creates a role once, however many ask, and no more than there may be', async () => {
    const changes = createRoleChangeStore(await open());
    const outcomes = await Promise.all([1, 2, 3].map(() => changes.create(reader, 2)));
    expect(outcomes.sort()).toEqual(['created', 'taken', 'taken']);
    expect(await changes.create({ ...reader, name: 'second' }, 2)).toBe('created');
    expect(await changes.create({ ...reader, name: 'third' }, 2)).toBe('full');
  });

  test('changes only what is as it was read', async () => {
    const database = await open();
    const changes = createRoleChangeStore(database);
    const roles = createRoleStore(database);
    await changes.create(reader, 9);
    const stronger = { ...reader, scopes: ['shutdown'] };
    const outcomes = await Promise.all([
      changes.replace(reader, stronger),
      changes.replace(reader, { ...reader, scopes: ['proxy'] }),
    ]);
    expect(outcomes.filter(Boolean)).toHaveLength(1);
    expect(await changes.assign(reader, to({ service: ['bot'] }))).toBe(false);
    expect(await changes.takeAway(reader, to({ service: ['bot'] }))).toBe(false);
    expect(await changes.delete(reader)).toBe(false);
    expect(await roles.listAssignments()).toEqual([]);
    expect(await changes.delete(await roles.getByName('reader'))).toBe(true);
    expect(await changes.replace(stronger, reader)).toBe(false);
  });

  test('gives a role to all or no one, and takes back only what was given at run time', async () => {
    const database = await open();
    const changes = createRoleChangeStore(database);
    const roles = createRoleStore(database);
    await createUserStore(database).createMissing(['alice', 'bob']);
    await changes.create(reader, 9);
    const given = { roleName: 'reader', subjectKind: 'user', subjectName: 'bob' } as const;
    await roles.apply({ assign: [{ ...given, origin: 'config' }] });
    await expect(changes.assign(reader, to({ user: ['alice', 'zoe'] }))).rejects.toThrow(
      'There is no such user: "zoe".',
    );
    await expect(changes.assign(reader, to({ group: ['none'] }))).rejects.toThrow('"none"');
    await changes.assign(reader, to({ user: ['alice', 'bob'], service: ['bot'] }));
    const origins = async () =>
      (await roles.listAssignments()).map(({ subjectName, origin }) => `${subjectName} ${origin}`);
    expect(await origins()).toEqual(['bot api', 'alice api', 'bob config']);
    await changes.takeAway(reader, to({ user: ['alice', 'bob'], service: ['bot'] }));
    expect(await origins()).toEqual(['bob config']);
  });
});
