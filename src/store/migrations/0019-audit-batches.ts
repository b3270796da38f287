import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** Users who are made together arrive in the audit log in one row: it becomes one for each when it is moved. */
export const migration0019: Migration = {
  name: '0019-audit-batches',
  async up({ schema }) {
    await schema
      .alterTable('audit_arrivals')
      // JSON: a list of names.
      .addColumn('target_names', 'text')
      .execute();
    await schema
      .alterTable('audit_arrivals')
      .addColumn('target_count', 'integer', (column) => column.notNull().defaultTo(sql`1`))
      .execute();
  },
};
