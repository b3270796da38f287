import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { Deed } from '../audit/deed.ts';
import type { HubDatabase } from '../store/database.ts';
import { jsonRowsIn } from '../store/json-list.ts';
import type { Row, Tables } from '../store/tables.ts';
import { validateUserName } from './user-name.ts';

/** What users who are created together have in common. */
export interface NewUserFlags {
  readonly isAdmin?: boolean;
  readonly isInvited?: boolean;
  /** Authenticator by which the owner will come; undefined: as the configuration says. */
  readonly madeFor?: string | undefined;
}

/** The row of a user, without what follows from that of the default server. */
export type UserRow = Omit<Row<'users'>, 'server_rank'>;

/** The row of a user who is yet to be inserted. Throws `bad_request` when it cannot be a name. */
export function newUserRow(user: NewUserFlags & { readonly name: string }): UserRow {
  return {
    id: randomUUID(),
    name: validateUserName(user.name),
    admin: Number(user.isAdmin ?? false),
    invited: Number(user.isInvited ?? false),
    created_at: Date.now(),
    last_activity_at: null,
    system_account: null,
    made_for: user.madeFor ?? null,
  };
}

/** The deed of making an account. */
export function userCreated({ name, admin }: Pick<UserRow, 'name' | 'admin'>): Deed {
  return {
    action: 'user.create',
    target: { kind: 'user', name },
    ...(admin === 1 && { detail: { admin: true } }),
  };
}

/**
 * Returns the row of a user, inserting it when there is none: also when another process inserts it
 * at the same moment.
 */
export async function ensureUserRow(
  kysely: Kysely<Tables>,
  { audit }: Pick<HubDatabase, 'audit'>,
  name: string,
): Promise<{ readonly row: UserRow; readonly isNew: boolean }> {
  const row = newUserRow({ name });
  const { numInsertedOrUpdatedRows } = await kysely
    .insertInto('users')
    .values(row)
    .onConflict((conflict) => conflict.column('name').doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 1n) {
    await audit.record(kysely, userCreated(row));
    return { row, isNew: true };
  }
  const found = await kysely
    .selectFrom('users')
    .selectAll()
    .where('name', '=', row.name)
    .executeTakeFirstOrThrow();
  return { row: found, isNew: false };
}

/** Inserts rows for those of the users who have none, in one statement, and returns these rows. */
export async function insertMissingUsers(
  { kysely, dialect, audit }: Pick<HubDatabase, 'kysely' | 'dialect' | 'audit'>,
  names: readonly string[],
  flags: NewUserFlags = {},
): Promise<UserRow[]> {
  const rows = names.map((name) => newUserRow({ name, ...flags }));
  const [first] = rows;
  if (first === undefined) return [];
  const { admin, invited, created_at, made_for } = first;
  const identities = JSON.stringify(rows.map(({ id, name }) => [id, name]));
  const insert = kysely
    .insertInto('users')
    .columns(['id', 'name', 'admin', 'invited', 'created_at', 'made_for'])
    .expression(
      sql`select value ->> 0, value ->> 1, cast(${admin} as integer), cast(${invited} as integer),
      cast(${created_at} as bigint), cast(${made_for} as text) from ${jsonRowsIn(identities, { dialect })} where true`,
    )
    .onConflict((conflict) => conflict.column('name').doNothing())
    .returning(['id', 'name']);
  const inserted = await audit.recordNewUsers(insert, userCreated(first), {
    names: rows.map(({ name }) => name),
    identities,
  });
  const ids = new Set(inserted.map(({ id }) => id));
  return rows.filter(({ id }) => ids.has(id)).map((row) => ({ ...row, created_at }));
}

/** The names of at most `limit` users that begin with this, in order. */
export async function completeUserName(
  { kysely }: Pick<HubDatabase, 'kysely'>,
  beginning: string,
  limit: number,
): Promise<string[]> {
  const start = beginning.normalize('NFC');
  const rows = await kysely
    .selectFrom('users')
    .select('name')
    .where('name', '>=', start)
    .orderBy('name')
    .limit(limit)
    .execute();
  return rows.map(({ name }) => name).filter((name) => name.startsWith(start));
}
