import type { Kysely } from 'kysely';
import type { GroupConfig } from '../config/config.ts';
import type { HubDatabase } from '../store/database.ts';
import type { Tables } from '../store/tables.ts';
import { addMember, deleteGroup, ensureGroup } from './group-rows-store.ts';
import { shareGroup } from './group-version-store.ts';
import { validateGroupName } from './user-name.ts';
import { ensureUserRow } from './user-rows-store.ts';

const origin = 'config';

/**
 * Brings `Hub.load_groups` into the tables. Users it names are created. Memberships that the
 * configuration made and no longer names end; a group that left it stays only as long as someone
 * else put members into it.
 * Groups that other settings name are created and stay, whatever is in them.
 */
export async function syncConfiguredGroups(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'audit' | 'dialect'>,
  groups: readonly GroupConfig[],
  namedElsewhere: readonly string[],
): Promise<void> {
  const keptNames = new Set(namedElsewhere.map(validateGroupName));
  for (const name of keptNames) await ensureGroup(transaction, name, origin);
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
    for (const user of group.users) {
      const { row } = await ensureUserRow(transaction, database, user);
      userIds.add(row.id);
      await addMember(transaction, groupId, row.id, origin);
    }
    await removeOtherMembers(transaction, database, groupId, userIds);
  }

  const former = await transaction
    .selectFrom('groups')
    .select(['id', 'name'])
    .where('origin', '=', origin)
    .execute();
  for (const { id, name } of former) {
    if (configuredNames.has(name)) continue;
    await removeOtherMembers(transaction, database, id, new Set());
    if (keptNames.has(name)) continue;
    const member = await transaction
      .selectFrom('group_members')
      .select('user_id')
      .where('group_id', '=', id)
      .executeTakeFirst();
    if (member === undefined) await deleteGroup(transaction, name);
    else
      await transaction.updateTable('groups').set({ origin: 'api' }).where('id', '=', id).execute();
  }
}

async function removeOtherMembers(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  groupId: string,
  userIds: ReadonlySet<string>,
): Promise<void> {
  const members = await transaction
    .selectFrom('group_members')
    .select('user_id')
    .where('group_id', '=', groupId)
    .where('origin', '=', origin)
    .execute();
  for (const { user_id: userId } of members) {
    if (userIds.has(userId)) continue;
    await shareGroup(transaction, database, groupId);
    await transaction
      .deleteFrom('group_members')
      .where('group_id', '=', groupId)
      .where('user_id', '=', userId)
      .execute();
  }
}
