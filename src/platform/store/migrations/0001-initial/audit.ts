import { sql, type Transaction } from 'kysely';

/** Who did what. Rows are never changed, also not by what does not go through the hub. */
export async function createAudit(
  database: Transaction<unknown>,
  dialect: 'sqlite' | 'postgres',
): Promise<void> {
  const isPostgres = dialect === 'postgres';
  const identity = 'bigint generated always as identity primary key';
  const statements = [
    // The id is never used again, so that a place in the list stays one. `users` is JSON: a list of names.
    `create table audit (
      id ${isPostgres ? identity : 'integer primary key autoincrement'},
      at bigint not null,
      actor_kind text not null,
      actor_name text,
      session_id text,
      token_id text,
      address text,
      action text not null,
      target_kind text,
      target_name text,
      target_part text,
      result text not null,
      detail text not null,
      instance text,
      users text,
      entry_count integer not null default 1,
      repeats text
    )`,
    // Each list is newest first, by one of these.
    'create index audit_at on audit (at, id)',
    'create index audit_actor on audit (actor_name, at, id)',
    'create index audit_action on audit (action, at, id)',
    'create index audit_target on audit (target_name, at, id)',
    "create index audit_undone on audit (result, at, id) where result <> 'done'",
    'create index audit_repeats on audit (id) where entry_count > 1',
    // What was done to many users is one row, found by the name of each in a table that has little else.
    `create table audit_users (
      name text not null, at bigint not null, id bigint not null, primary key (name, at, id)
    ) ${isPostgres ? '' : 'without rowid'}`,
    // What is recorded arrives here as one JSON list, with what it tells of: without an index and columns of its own,
    // which would cost several times as much as the row. It is moved into the log soon after, many at once.
    `create table audit_arrivals (
      id ${isPostgres ? identity : 'integer primary key'},
      entry text not null,
      users text,
      user_count integer not null default 1
    )`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(database);
  if (isPostgres) {
    await sql`
        create function hub_keep_audit() returns trigger language plpgsql as $$
        begin
          raise exception 'rows of the audit log are not changed';
        end $$`.execute(database);
  }
  const refusal = isPostgres
    ? 'for each statement execute function hub_keep_audit()'
    : "begin select raise(abort, 'rows of the audit log are not changed'); end";
  for (const table of ['audit', 'audit_arrivals']) {
    await sql
      .raw(`create trigger keep_${table} before update on ${table} ${refusal}`)
      .execute(database);
  }
}
