import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Volumes that were there before the hub, as those of users. */
export const migration0017: Migration = {
  name: '0017-user-volumes',
  async up(database) {
    await sql`create table user_volumes (
      user_id text not null references users (id) on delete cascade,
      server_name text not null,
      volume text not null,
      source text not null unique,
      primary key (user_id, server_name, volume)
    )`.execute(database);
  },
};
