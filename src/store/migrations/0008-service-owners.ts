import type { Migration } from '../migration.ts';

/** Which instance runs each managed service, and how it is there. */
export const migration0008: Migration = {
  name: '0008-service-owners',
  async up({ schema }) {
    await schema
      .createTable('service_owners')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('instance_id', 'text', (column) => column.notNull())
      .addColumn('token_hash', 'text')
      .addColumn('tag', 'text')
      .addColumn('status', 'text')
      .execute();
  },
};
