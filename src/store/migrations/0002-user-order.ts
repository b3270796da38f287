import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Indexes that hold everything a list of users is sorted by, so that a late page is found as fast. */
export const migration0002: Migration = {
  name: '0002-user-order',
  async up(database, dialect) {
    const { schema } = database;
    await schema
      .createIndex('users_created_at')
      .on('users')
      .columns(['created_at', 'name'])
      .execute();
    await schema.dropIndex('users_last_activity_at').execute();
    // PostgreSQL takes nulls for the largest values, SQLite, and our lists, for the smallest.
    const nulls = dialect === 'postgres' ? sql` nulls first` : sql``;
    await sql`create index users_last_activity_at on users (last_activity_at${nulls}, name)`.execute(
      database,
    );
  },
};
