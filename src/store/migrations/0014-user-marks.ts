import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Indexes of the few users and servers that the administration asks for, among very many. */
export const migration0014: Migration = {
  name: '0014-user-marks',
  async up(database) {
    await sql`create index users_administrators on users (name) where admin = 1`.execute(database);
    await sql`create index servers_failed on servers (user_id)
      where state = 'stopped' and failure is not null`.execute(database);
    await sql`create index servers_state_user on servers (state, user_id)`.execute(database);
    await sql`drop index servers_state`.execute(database);
  },
};
