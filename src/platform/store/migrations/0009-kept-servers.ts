import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Until when users keep their servers running though these are idle. */
export const migration0009: Migration = {
  name: '0009-kept-servers',
  async up(database) {
    await sql`alter table servers add column kept_until bigint`.execute(database);
  },
};
