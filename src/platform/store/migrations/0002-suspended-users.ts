import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Users who are shut out for a time, with all that is theirs. */
export const migration0002: Migration = {
  name: '0002-suspended-users',
  async up(database) {
    await sql`alter table users add column suspended_at bigint`.execute(database);
    await sql`create unique index users_suspended on users (id) where suspended_at is not null`.execute(
      database,
    );
  },
};
