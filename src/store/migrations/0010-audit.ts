import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Who did what. Rows are never changed, also not by what does not go through the hub. */
export const migration0010: Migration = {
  name: '0010-audit',
  async up(database, dialect) {
    const { schema } = database;
    await schema
      .createTable('audit')
      // Never used again, so that a place in the list stays one.
      .addColumn('id', dialect === 'postgres' ? 'bigint' : 'integer', (column) =>
        dialect === 'postgres'
          ? column.primaryKey().generatedAlwaysAsIdentity()
          : column.primaryKey().autoIncrement(),
      )
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('actor_kind', 'text', (column) => column.notNull())
      .addColumn('actor_name', 'text')
      .addColumn('session_id', 'text')
      .addColumn('token_id', 'text')
      .addColumn('address', 'text')
      .addColumn('action', 'text', (column) => column.notNull())
      .addColumn('target_kind', 'text')
      .addColumn('target_name', 'text')
      .addColumn('target_part', 'text')
      .addColumn('result', 'text', (column) => column.notNull())
      .addColumn('detail', 'text', (column) => column.notNull())
      .addColumn('instance', 'text')
      .execute();
    // Each list is newest first, by one of these.
    await sql`create index audit_at on audit (at, id)`.execute(database);
    await sql`create index audit_actor on audit (actor_name, at, id)`.execute(database);
    await sql`create index audit_action on audit (action, at, id)`.execute(database);
    await sql`create index audit_target on audit (target_name, at, id)`.execute(database);
    await sql`create index audit_undone on audit (result, at, id) where result <> 'done'`.execute(
      database,
    );
    if (dialect === 'postgres') {
      await sql`
        create function hub_keep_audit() returns trigger language plpgsql as $$
        begin
          raise exception 'rows of the audit log are not changed';
        end $$`.execute(database);
      await sql`
        create trigger keep_audit before update on audit
        for each statement execute function hub_keep_audit()`.execute(database);
      return;
    }
    await sql`
      create trigger keep_audit before update on audit
      begin select raise(abort, 'rows of the audit log are not changed'); end`.execute(database);
  },
};
