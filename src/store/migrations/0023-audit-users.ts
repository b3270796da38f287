import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** A deed done to many users is one row, found by the name of each in a table that has little else. */
export const migration0023: Migration = {
  name: '0023-audit-users',
  async up(database, dialect) {
    const { schema } = database;
    // JSON: a list of names.
    await schema.alterTable('audit').addColumn('users', 'text').execute();
    await schema.alterTable('audit_arrivals').renameColumn('target_names', 'users').execute();
    await schema.alterTable('audit_arrivals').renameColumn('target_count', 'user_count').execute();
    await sql`
      create table audit_users (
        name text not null, at bigint not null, id bigint not null, primary key (name, at, id)
      ) ${sql.raw(dialect === 'sqlite' ? 'without rowid' : '')}`.execute(database);
  },
};
