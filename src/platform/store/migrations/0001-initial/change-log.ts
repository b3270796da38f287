import { sql, type Transaction } from 'kysely';
import { pinSearchPath } from './search-path.ts';

/** A table whose changes concern other processes. */
interface ReportedTable {
  readonly table: string;
  /** Kind of the change, for each thing done to the table. */
  readonly reported: Partial<Record<'insert' | 'update' | 'delete', string>>;
  /** Column that says whom or what it concerns. */
  readonly subject?: string;
  /** Columns of which nothing that anyone remembers depends. */
  readonly silent?: readonly string[];
}

const any = 'rights_changed';
export const each = (kind: string) => ({ insert: kind, update: kind, delete: kind });

const reportedTables: readonly ReportedTable[] = [
  {
    table: 'users',
    reported: { insert: 'user_added', update: any, delete: any },
    silent: ['last_activity_at', 'system_account', 'server_rank'],
  },
  { table: 'identities', reported: each(any), silent: ['display'] },
  { table: 'groups', reported: each('groups_changed') },
  { table: 'group_members', reported: each('groups_changed') },
  { table: 'roles', reported: each(any) },
  { table: 'role_assignments', reported: each(any) },
  {
    table: 'login_sessions',
    reported: { update: 'session_ended', delete: 'session_ended' },
    subject: 'session_id',
    silent: ['last_seen_at', 'upstream_session_id', 'id_token_encrypted'],
  },
  {
    table: 'access_tokens',
    reported: { update: 'token_revoked', delete: 'token_revoked' },
    subject: 'id',
    silent: ['last_used_at', 'note'],
  },
  {
    table: 'servers',
    reported: each('server_changed'),
    subject: 'id',
    silent: ['last_activity_at'],
  },
  {
    table: 'managed_processes',
    reported: each('services_changed'),
  },
  {
    table: 'instances',
    reported: each('instances_changed'),
    silent: ['lease_until'],
  },
  { table: 'shares', reported: each(any) },
  { table: 'runtime_services', reported: each('runtime_services_changed') },
  {
    table: 'user_info',
    reported: each('user_info_changed'),
    subject: 'user_id',
  },
  {
    table: 'service_stops',
    reported: each('services_changed'),
  },
  {
    table: 'notices',
    reported: each('notices_changed'),
  },
];

/**
 * The log of changes, on PostgreSQL. Triggers write it, in the transaction of the change itself: neither a
 * process that dies after its commit nor a change made by hand goes unheard.
 */
export async function createChangeLog(database: Transaction<unknown>): Promise<void> {
  // xid: transactions commit in another order than they get their numbers, so the number of a row does
  // not tell whether a reader that was here before has seen it; its transaction does.
  await sql`
    create table changes (
      id bigint generated always as identity primary key,
      xid xid8 not null default pg_current_xact_id(),
      kind text not null,
      subject text,
      created_at bigint not null default extract(epoch from clock_timestamp()) * 1000
    )`.execute(database);
  await sql`create index changes_xid on changes (xid)`.execute(database);

  await sql`
    create function hub_announce_changes() returns trigger language plpgsql as $$
    begin
      notify hub_changed, '{}';
      return null;
    end $$`.execute(database);
  await sql`
    create trigger announce_changes after insert on changes
    for each statement execute function hub_announce_changes()`.execute(database);

  // Arguments: kind, column with the subject or '', columns that do not count.
  await sql`
    create function hub_note_changes() returns trigger
    language plpgsql security definer as $$
    declare
      silent text[] := tg_argv[2]::text[];
      concerned jsonb[];
    begin
      if tg_op = 'INSERT' then
        concerned := array(select to_jsonb(latter) from latter);
      elsif tg_op = 'DELETE' then
        -- What had expired was refused before.
        concerned := array(
          select row from (select to_jsonb(former) as row from former) as rows
          where coalesce(
            (row->>'expires_at')::bigint > extract(epoch from clock_timestamp()) * 1000, true
          )
        );
      else
        concerned := array(
          select to_jsonb(former) - silent from former
          except
          select to_jsonb(latter) - silent from latter
        );
      end if;
      -- What concerns no one, as the renewal of a lease, wakes no one up.
      if cardinality(concerned) = 0 then
        return null;
      end if;
      insert into changes (kind, subject)
      select distinct tg_argv[0], row->>tg_argv[1] from unnest(concerned) as row;
      return null;
    end $$`.execute(database);
  await pinSearchPath(database, 'hub_note_changes');
  for (const reported of reportedTables) await tellChanges(database, reported);

  // The scopes of a share name the server: once it is renamed, another one may get that name.
  await sql`
      create function hub_note_rename() returns trigger language plpgsql security definer as $$
      begin
        insert into changes (kind) values ('rights_changed');
        return null;
      end $$`.execute(database);
  await pinSearchPath(database, 'hub_note_rename');
  await sql`
    create trigger note_rename after update of name on servers for each row
    when (old.name is distinct from new.name) execute function hub_note_rename()`.execute(database);
}

/** Makes PostgreSQL write the changes of a table into the log. */
export async function tellChanges(
  database: Transaction<unknown>,
  { table, reported, subject = '', silent = [] }: ReportedTable,
): Promise<void> {
  const rows = {
    insert: sql`new table as latter`,
    update: sql`old table as former new table as latter`,
    delete: sql`old table as former`,
  };
  for (const event of ['insert', 'update', 'delete'] as const) {
    const kind = reported[event];
    if (kind === undefined) continue;
    await sql`
      create trigger ${sql.id(`note_${event}`)} after ${sql.raw(event)} on ${sql.table(table)}
      referencing ${rows[event]} for each statement
      execute function hub_note_changes(
        ${sql.lit(kind)}, ${sql.lit(subject)}, ${sql.lit(`{${silent.join(',')}}`)}
      )`.execute(database);
  }
}
