import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/**
 * Users who were never active, by their ids, to count those of a group. Unique, as ids are: SQLite prefers the index
 * of the primary key otherwise, and reads each user.
 */
export const migration0021: Migration = {
  name: '0021-never-active',
  async up(database) {
    await sql`create unique index users_never_active on users (id)
      where last_activity_at is null`.execute(database);
  },
};
