import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** How full homes were when they were looked at last. */
export const migration0016: Migration = {
  name: '0016-home-spaces',
  async up(database) {
    await sql`create table home_spaces (
      user_id text primary key references users (id) on delete cascade,
      used_bytes bigint not null,
      total_bytes bigint not null,
      measured_at bigint not null
    )`.execute(database);
  },
};
