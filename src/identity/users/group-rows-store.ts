import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { textsOf } from '../../platform/store/queries.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { text } from '../../platform/texts/text.ts';
import { normaliseUserName } from './user-name.ts';

/** The row of a group that is yet to be inserted. */
export function newGroupRow(
  name: string,
  origin: string,
  properties: Readonly<Record<string, unknown>> = {},
): Row<'groups'> {
  return {
    id: randomUUID(),
    name,
    properties: JSON.stringify(properties),
    origin,
    created_at: Date.now(),
  };
}

/** Returns the id of a group, creating it when there is none. */
export async function ensureGroup(
  transaction: Kysely<Tables>,
  name: string,
  origin: string,
): Promise<string> {
  await transaction
    .insertInto('groups')
    .values(newGroupRow(name, origin))
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
  const { id } = await transaction
    .selectFrom('groups')
    .select('id')
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  return id;
}

/** Adds a member; one who is a member already keeps the origin of that. Tells whether it is a new one. */
export async function addMember(
  transaction: Kysely<Tables>,
  groupId: string,
  userId: string,
  origin: string,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('group_members')
    .values({ group_id: groupId, user_id: userId, origin })
    .onConflict((conflict) => conflict.columns(['group_id', 'user_id']).doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** Adds users by their names, which it returns; throws `bad_request` that names those there are not. */
export async function addNamedMembers(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  groupId: string,
  userNames: readonly string[],
  origin: string,
): Promise<readonly string[]> {
  const names = [...new Set(userNames.map(normaliseUserName))];
  const users = await transaction
    .selectFrom('users')
    .select(['id', 'name'])
    .where('name', 'in', textsOf(names, database))
    .execute();
  if (users.length < names.length) {
    const known = new Set(users.map((user) => user.name));
    const missing = names.filter((name) => !known.has(name));
    throw new HubError('bad_request', text`There are no such users: ${listed(missing)}.`);
  }
  for (const user of users) await addMember(transaction, groupId, user.id, origin);
  return names;
}

/** Deletes a group with its memberships and the roles given to it. */
export async function deleteGroup(transaction: Kysely<Tables>, name: string): Promise<boolean> {
  const { numDeletedRows } = await transaction
    .deleteFrom('groups')
    .where('name', '=', name)
    .executeTakeFirst();
  await transaction
    .deleteFrom('role_assignments')
    .where('subject_kind', '=', 'group')
    .where('subject_name', '=', name)
    .execute();
  return numDeletedRows > 0n;
}

/** Something done to a group, for the audit log. */
export function groupAuditEvent(
  action: AuditEvent['action'],
  name: string,
  detail: AuditEvent['detail'] = {},
): AuditEvent {
  return { action, target: { kind: 'group', name: name.normalize('NFC') }, detail };
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 100)));
  return shown.join(', ') + (names.length > shown.length ? ', …' : '');
}
