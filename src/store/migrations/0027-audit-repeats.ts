import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Many entries alike become one: how many, and what each of them had of its own. */
export const migration0027: Migration = {
  name: '0027-audit-repeats',
  async up(database) {
    const { schema } = database;
    await schema
      .alterTable('audit')
      .addColumn('entry_count', 'integer', (column) => column.notNull().defaultTo(1))
      .execute();
    // JSON: see `alike-entries.ts`.
    await schema.alterTable('audit').addColumn('repeats', 'text').execute();
    await sql`create index audit_repeats on audit (id) where entry_count > 1`.execute(database);
  },
};
