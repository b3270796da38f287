import type { Kysely } from 'kysely';
import type { AuditEvent } from '../audit/audit-event.ts';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import type { HubDatabase } from './database.ts';
import { isForeignKeyViolation } from './storage-error.ts';
import type { Tables } from './tables.ts';

/** The name of a user, by id; undefined where there is none. */
export async function userNameOf(on: Kysely<Tables>, id: string): Promise<string | undefined> {
  const user = await on.selectFrom('users').select('name').where('id', '=', id).executeTakeFirst();
  return user?.name;
}

/** Records what is done to a user, by id, in the transaction that does it. */
export async function recordOfUser(
  { audit }: Pick<HubDatabase, 'audit'>,
  transaction: Kysely<Tables>,
  userId: string,
  auditEvent: Omit<AuditEvent, 'target'>,
): Promise<void> {
  const name = (await userNameOf(transaction, userId)) ?? '';
  await audit.record(transaction, { ...auditEvent, target: { kind: 'user', name } });
}

/** What an error of a write that refers to a user is: `not_found` where there is none. */
export function withoutUser(error: unknown): unknown {
  return isForeignKeyViolation(error)
    ? new HubError('not_found', text`There is no such user.`, { cause: error })
    : error;
}
