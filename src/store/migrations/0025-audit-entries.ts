import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

const listed = [
  'at',
  'actor_kind',
  'actor_name',
  'session_id',
  'token_id',
  'address',
  'action',
  'target_kind',
  'target_name',
  'target_part',
  'result',
  'detail',
  'instance',
].join(', ');

/**
 * What is recorded arrives as one JSON list of these values: to hand each of them over by itself, and to store it, takes
 * a good part of what recording costs a request. They become columns when the row is moved into the log.
 */
export const migration0025: Migration = {
  name: '0025-audit-entries',
  async up(database, dialect) {
    await database.schema.alterTable('audit_arrivals').renameTo('former_arrivals').execute();
    await database.schema
      .createTable('audit_arrivals')
      .addColumn('id', dialect === 'postgres' ? 'bigint' : 'integer', (column) =>
        dialect === 'postgres'
          ? column.primaryKey().generatedAlwaysAsIdentity()
          : column.primaryKey(),
      )
      .addColumn('entry', 'text', (column) => column.notNull())
      // JSON: a list of names.
      .addColumn('users', 'text')
      .addColumn('user_count', 'integer', (column) => column.notNull().defaultTo(sql`1`))
      .execute();
    const entry =
      dialect === 'postgres' ? `json_build_array(${listed})::text` : `json_array(${listed})`;
    await sql`
      insert into audit_arrivals (entry, users, user_count)
      select ${sql.raw(entry)}, users, user_count from former_arrivals order by id`.execute(
      database,
    );
    await database.schema.dropTable('former_arrivals').execute();
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
