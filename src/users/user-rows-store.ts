import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Row, Tables } from '../store/tables.ts';
import { validateUserName } from './user-name.ts';

/** The row of a user who is yet to be inserted. Throws `bad_request` when it cannot be a name. */
export function newUserRow(user: {
  readonly name: string;
  readonly isAdmin?: boolean;
  readonly isInvited?: boolean;
}): Row<'users'> {
  return {
    id: randomUUID(),
    name: validateUserName(user.name),
    admin: Number(user.isAdmin ?? false),
    invited: Number(user.isInvited ?? false),
    created_at: Date.now(),
    last_activity_at: null,
  };
}

/**
 * Returns the row of a user, inserting it when there is none: also when another process inserts it
 * at the same moment.
 */
export async function ensureUserRow(
  kysely: Kysely<Tables>,
  name: string,
): Promise<{ readonly row: Row<'users'>; readonly isNew: boolean }> {
  const row = newUserRow({ name });
  const { numInsertedOrUpdatedRows } = await kysely
    .insertInto('users')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 1n) return { row, isNew: true };
  const found = await kysely
    .selectFrom('users')
    .selectAll()
    .where('name', '=', row.name)
    .executeTakeFirstOrThrow();
  return { row: found, isNew: false };
}

/** Rows in one statement: each has a few parameters, of which a database takes some ten thousand. */
const rowsAtOnce = 1_000;

/** Inserts rows for those of the users who have none; returns how many. */
export async function insertMissingUsers(
  kysely: Kysely<Tables>,
  names: readonly string[],
): Promise<number> {
  let count = 0;
  for (let from = 0; from < names.length; from += rowsAtOnce) {
    const rows = names.slice(from, from + rowsAtOnce).map((name) => newUserRow({ name }));
    const { numInsertedOrUpdatedRows = 0n } = await kysely
      .insertInto('users')
      .values(rows)
      .onConflict((conflict) => conflict.column('name').doNothing())
      .executeTakeFirstOrThrow();
    count += Number(numInsertedOrUpdatedRows);
  }
  return count;
}
