import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** What services change of headers, which may hold secrets, is kept sealed. */
export const migration0018: Migration = {
  name: '0018-sealed-headers',
  async up(database) {
    await sql`alter table runtime_services add column headers_encrypted text`.execute(database);
  },
};
