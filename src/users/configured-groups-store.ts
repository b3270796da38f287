import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { GroupConfig } from '../config/config.ts';
import type { Tables } from '../store/tables.ts';
import { addMember, deleteGroup, ensureGroup } from './group-rows-store.ts';
import { validateGroupName, validateUserName } from './user-name.ts';

const origin = 'config';

/**
 * Brings `Hub.load_groups` into the tables. Users it names are created. Memberships that the
 * configuration made and no longer names end; a group that left it stays only as long as somebody
 * else put members into it.
 */
export async function syncConfiguredGroups(
  transaction: Kysely<Tables>,
  groups: readonly GroupConfig[],
): Promise<void> {
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
      const userId = await ensureUser(transaction, validateUserName(user));
      userIds.add(userId);
      await addMember(transaction, groupId, userId, origin);
    }
    await removeOtherMembers(transaction, groupId, userIds);
  }

  const former = await transaction
    .selectFrom('groups')
    .select(['id', 'name'])
    .where('origin', '=', origin)
    .execute();
  for (const { id, name } of former) {
    if (configuredNames.has(name)) continue;
    await removeOtherMembers(transaction, id, new Set());
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
    await transaction
      .deleteFrom('group_members')
      .where('group_id', '=', groupId)
      .where('user_id', '=', userId)
      .execute();
  }
}

async function ensureUser(transaction: Kysely<Tables>, name: string): Promise<string> {
  await transaction
    .insertInto('users')
    .values({
      id: randomUUID(),
      name,
      admin: 0,
      invited: 0,
      created_at: Date.now(),
      last_activity_at: null,
    })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const { id } = await transaction
    .selectFrom('users')
    .select('id')
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  return id;
}
