import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/**
 * Rows of the audit log as they are written with what they tell of: without an index, which would cost several times as
 * much as the row. They are moved into the log soon after, many at once.
 */
export const migration0016: Migration = {
  name: '0016-audit-arrivals',
  async up(database, dialect) {
    await database.schema
      .createTable('audit_arrivals')
      .addColumn('id', dialect === 'postgres' ? 'bigint' : 'integer', (column) =>
        dialect === 'postgres'
          ? column.primaryKey().generatedAlwaysAsIdentity()
          : column.primaryKey(),
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
    if (dialect === 'postgres') {
      await sql`
        create trigger keep_audit_arrivals before update on audit_arrivals
        for each statement execute function hub_keep_audit()`.execute(database);
      return;
    }
    await sql`
      create trigger keep_audit_arrivals before update on audit_arrivals
      begin select raise(abort, 'rows of the audit log are not changed'); end`.execute(database);
  },
};
