import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** What was granted beside budgets. */
export const migration0013: Migration = {
  name: '0013-budget-grants',
  async up(database) {
    await sql`create table budget_grants (
      id text primary key,
      budget text not null,
      user_id text,
      amounts text not null,
      expires_at bigint not null
    )`.execute(database);
  },
};
