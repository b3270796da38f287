import type { Kysely } from 'kysely';
import type { GroupConfig } from '../../platform/config/config.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { addMember, deleteGroup, ensureGroup, groupAuditEvent } from './group-rows-store.ts';
import { shareGroup } from './group-version-store.ts';
import { validateGroupName } from './user-name.ts';
import { ensureUserRow } from './user-rows-store.ts';

const origin = 'config';

/**
 * Brings `Hub.load_groups` into the tables. Users it names are created. Memberships that the
 * configuration made and no longer names end; a group that left it stays only as long as someone
 * else put members into it.
 * Groups that other settings name are created and stay, whatever is in them. Returns who is a member that was none
 * before, by group.
 */
export async function syncConfiguredGroups(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'audit' | 'dialect'>,
  groups: readonly GroupConfig[],
  otherNames: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const added = new Map<string, readonly string[]>();
  const remainingNames = new Set(otherNames.map(validateGroupName));
  for (const name of remainingNames) await ensureGroup(transaction, name, origin);
  const configuredNames = new Set<string>();
  for (const group of groups) {
    const name = validateGroupName(group.name);
    configuredNames.add(name);
    const groupId = await ensureGroup(transaction, name, origin);
    await transaction
      .updateTable('groups')
      .set({ origin, properties: JSON.stringify(group.properties) })
      .where('id', '=', groupId)
      .execute();
    const userIds = new Set<string>();
    const newNames: string[] = [];
    for (const user of group.users) {
      const { row } = await ensureUserRow(transaction, database, user);
      userIds.add(row.id);
      if (await addMember(transaction, groupId, row.id, origin)) newNames.push(row.name);
    }
    await removeOtherMembers(transaction, database, { id: groupId, name }, userIds);
    if (newNames.length === 0) continue;
    added.set(name, newNames);
    await database.audit.record(transaction, {
      ...groupAuditEvent('group.add_members', name, { origin }),
      users: newNames,
    });
  }

  const former = await transaction
    .selectFrom('groups')
    .select(['id', 'name'])
    .where('origin', '=', origin)
    .execute();
  for (const { id, name } of former) {
    if (configuredNames.has(name)) continue;
    await removeOtherMembers(transaction, database, { id, name }, new Set());
    if (remainingNames.has(name)) continue;
    const member = await transaction
      .selectFrom('group_members')
      .select('user_id')
      .where('group_id', '=', id)
      .executeTakeFirst();
    if (member === undefined) await deleteGroup(transaction, name);
    else
      await transaction.updateTable('groups').set({ origin: 'api' }).where('id', '=', id).execute();
  }
  return added;
}

async function removeOtherMembers(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'audit' | 'dialect'>,
  group: { readonly id: string; readonly name: string },
  userIds: ReadonlySet<string>,
): Promise<void> {
  const members = await transaction
    .selectFrom('group_members')
    .innerJoin('users', 'users.id', 'group_members.user_id')
    .select(['users.id', 'users.name'])
    .where('group_id', '=', group.id)
    .where('origin', '=', origin)
    .execute();
  const former = members.filter(({ id }) => !userIds.has(id));
  if (former.length === 0) return;
  await shareGroup(transaction, database, group.id);
  for (const { id } of former) {
    await transaction
      .deleteFrom('group_members')
      .where('group_id', '=', group.id)
      .where('user_id', '=', id)
      .execute();
  }
  await database.audit.record(transaction, {
    ...groupAuditEvent('group.remove_members', group.name, { origin }),
    users: former.map(({ name }) => name),
  });
}
