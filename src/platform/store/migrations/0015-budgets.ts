import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Budgets that are set at run time. */
export const migration0015: Migration = {
  name: '0015-budgets',
  async up(database) {
    await sql`create table budgets (name text primary key, definition text not null)`.execute(
      database,
    );
  },
};
