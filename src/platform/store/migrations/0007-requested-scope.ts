import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** What a client asked for, by which the answer with its token names what it got. */
export const migration0007: Migration = {
  name: '0007-requested-scope',
  async up(database) {
    await sql`alter table authorization_codes add column requested_scope text`.execute(database);
  },
};
