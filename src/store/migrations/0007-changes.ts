import { sql, type Transaction } from 'kysely';
import type { Migration } from '../migration.ts';

/** A table whose changes concern other processes. */
interface ToldTable {
  readonly table: string;
  /** Kind of the change, for each thing done to the table. */
  readonly told: Partial<Record<'insert' | 'update' | 'delete', string>>;
  /** Column that says whom or what it concerns. */
  readonly subject?: string;
  /** Columns of which nothing that anyone remembers depends. */
  readonly silent?: readonly string[];
}

const any = 'rights_changed';
const groups = 'groups_changed';

const toldTables: readonly ToldTable[] = [
  {
    table: 'users',
    told: { insert: 'user_added', update: any, delete: any },
    silent: ['last_activity_at', 'system_account'],
  },
  { table: 'identities', told: { insert: any, update: any, delete: any }, silent: ['display'] },
  { table: 'groups', told: { insert: groups, update: groups, delete: groups } },
  { table: 'group_members', told: { insert: groups, update: groups, delete: groups } },
  { table: 'roles', told: { insert: any, update: any, delete: any } },
  { table: 'role_assignments', told: { insert: any, update: any, delete: any } },
  {
    table: 'login_sessions',
    told: { update: 'session_ended', delete: 'session_ended' },
    subject: 'session_id',
    silent: ['last_seen_at', 'upstream_session_id', 'id_token_encrypted'],
  },
  {
    table: 'access_tokens',
    told: { update: 'token_revoked', delete: 'token_revoked' },
    subject: 'id',
    silent: ['last_used_at', 'note'],
  },
  {
    table: 'servers',
    told: { insert: 'server_changed', update: 'server_changed', delete: 'server_changed' },
    subject: 'id',
    silent: ['last_activity_at'],
  },
  {
    table: 'managed_processes',
    told: { insert: 'services_changed', update: 'services_changed', delete: 'services_changed' },
  },
  {
    table: 'instances',
    told: { insert: 'instances_changed', update: 'instances_changed', delete: 'instances_changed' },
    silent: ['lease_until'],
  },
];

/**
 * The log of changes, on PostgreSQL. Triggers write it, in the transaction of the change itself: neither a
 * process that dies after its commit nor a change made by hand goes unheard.
 */
export const migration0007: Migration = {
  name: '0007-changes',
  async up(database, dialect) {
    if (dialect !== 'postgres') return;
    await createLog(database);
    for (const told of toldTables) await tell(database, told);
  },
};

async function createLog(database: Transaction<unknown>): Promise<void> {
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
  // The session that changes a table may have another search path than the hub.
  await sql`
    do $$ begin
      execute format('alter function hub_note_changes() set search_path = %I, pg_temp', current_schema());
    end $$`.execute(database);
}

/** Makes PostgreSQL write the changes of a table into the log. */
export async function tell(
  database: Transaction<unknown>,
  { table, told, subject = '', silent = [] }: ToldTable,
): Promise<void> {
  const rows = {
    insert: sql`new table as latter`,
    update: sql`old table as former new table as latter`,
    delete: sql`old table as former`,
  };
  for (const deed of ['insert', 'update', 'delete'] as const) {
    const kind = told[deed];
    if (kind === undefined) continue;
    await sql`
      create trigger ${sql.id(`note_${deed}`)} after ${sql.raw(deed)} on ${sql.table(table)}
      referencing ${rows[deed]} for each statement
      execute function hub_note_changes(
        ${sql.lit(kind)}, ${sql.lit(subject)}, ${sql.lit(`{${silent.join(',')}}`)}
      )`.execute(database);
  }
}
