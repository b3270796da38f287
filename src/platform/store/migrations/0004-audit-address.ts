import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Finds in the audit log what came from an address. */
export const migration0004: Migration = {
  name: '0004-audit-address',
  async up(database) {
    await sql`create index audit_address on audit (address, at, id)`.execute(database);
  },
};
