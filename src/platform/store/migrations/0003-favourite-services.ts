import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** The services that users want to find first. */
export const migration0003: Migration = {
  name: '0003-favourite-services',
  async up(database) {
    await sql`create table favourite_services (
      user_id text not null references users (id) on delete cascade,
      service_name text not null,
      primary key (user_id, service_name)
    )`.execute(database);
  },
};
