import type { Kysely } from 'kysely';
import { anyVersion, type RequireVersion, versionOf } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { text } from '../../platform/texts/text.ts';

interface VersionedGroup {
  readonly id: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** Tells whether a group or who belongs to it has changed. */
export function versionOfGroup(
  { id, properties }: VersionedGroup,
  memberNames: readonly string[],
): string {
  return versionOf([id, properties, memberNames.toSorted()]);
}

/**
 * Waits for the end of a change that is held to a version, and keeps others from beginning. For the removal of a member,
 * which would come between; to add one, or to change the group itself, waits by itself.
 */
export async function shareGroup(
  transaction: Kysely<Tables>,
  { dialect }: Pick<HubDatabase, 'dialect'>,
  groupId: string,
): Promise<void> {
  // Transactions of SQLite come one after another anyway.
  if (dialect === 'sqlite') return;
  await transaction
    .selectFrom('groups')
    .select('id')
    .where('id', '=', groupId)
    .forShare()
    .execute();
}

/**
 * Throws `not_found`, and what `requireVersion` throws. Until the end of the transaction no one else changes a group
 * that was held to a version.
 */
export async function checkGroupVersion(
  transaction: Kysely<Tables>,
  { dialect }: Pick<HubDatabase, 'dialect'>,
  groupName: string,
  requireVersion: RequireVersion = anyVersion,
): Promise<void> {
  if (requireVersion === anyVersion) return;
  let query = transaction
    .selectFrom('groups')
    .select(['id', 'properties'])
    .where('name', '=', groupName.normalize('NFC'));
  // Transactions of SQLite come one after another anyway.
  if (dialect === 'postgres') query = query.forUpdate();
  const group = await query.executeTakeFirst();
  if (group === undefined) throw new HubError('not_found', text`There is no such group.`);
  const members = await transaction
    .selectFrom('group_members')
    .innerJoin('users', 'users.id', 'group_members.user_id')
    .select('users.name')
    .where('group_members.group_id', '=', group.id)
    .execute();
  const properties = JSON.parse(group.properties) as VersionedGroup['properties'];
  requireVersion(
    versionOfGroup(
      { id: group.id, properties },
      members.map(({ name }) => name),
    ),
  );
}
