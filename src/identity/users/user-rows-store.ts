import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import type { UserInsertion } from '../../platform/store/audit-trail.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { jsonRows } from '../../platform/store/queries.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
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
    suspended_at: null,
    system_account: null,
    made_for: user.madeFor ?? null,
  };
}

/** The action of making an account. */
export function userCreated({ name, admin }: Pick<UserRow, 'name' | 'admin'>): AuditEvent {
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

/** Inserts rows for those of the users who have none, all or none, and returns these rows. */
export async function insertMissingUsers(
  { kysely, dialect, audit }: Pick<HubDatabase, 'kysely' | 'dialect' | 'audit'>,
  names: readonly string[],
  flags: NewUserFlags = {},
): Promise<UserRow[]> {
  const [first, ...others] = names.map((name) => newUserRow({ name, ...flags }));
  if (first === undefined) return [];
  const { created_at } = first;
  const rows = [first, ...others.map((row) => ({ ...row, created_at }))];
  const insertion = dialect === 'sqlite' ? insertEach(kysely, rows) : insertAll(kysely, rows);
  return await audit.recordNewUsers(insertion, userCreated(first), rows);
}

const insertedColumns = ['id', 'name', 'admin', 'invited', 'created_at', 'made_for'] as const;

function insertEach(kysely: Kysely<Tables>, rows: readonly UserRow[]): UserInsertion {
  const [first] = rows;
  const one = Object.fromEntries(insertedColumns.map((name) => [name, first?.[name]]));
  const insert = kysely
    .insertInto('users')
    .values(one as unknown as UserRow)
    .onConflict((conflict) => conflict.column('name').doNothing())
    .compile();
  return { ...insert, each: rows.map((row) => insertedColumns.map((name) => row[name])) };
}

function insertAll(kysely: Kysely<Tables>, rows: readonly UserRow[]): UserInsertion {
  const values = rows.map((row) => insertedColumns.map((name) => row[name]));
  return kysely
    .insertInto('users')
    .columns(insertedColumns)
    .expression(
      sql`select value ->> 0, value ->> 1, cast(value ->> 2 as integer), cast(value ->> 3 as integer),
      cast(value ->> 4 as bigint), value ->> 5
      from ${jsonRows(values, { dialect: 'postgres' })} where true`,
    )
    .onConflict((conflict) => conflict.column('name').doNothing())
    .returning(['id', 'name'])
    .compile();
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
