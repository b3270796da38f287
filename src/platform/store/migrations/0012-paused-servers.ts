import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Since when servers are paused. */
export const migration0012: Migration = {
  name: '0012-paused-servers',
  async up(database) {
    await sql`alter table servers add column paused_at bigint`.execute(database);
  },
};
