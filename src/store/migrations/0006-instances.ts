import type { Migration } from '../migration.ts';

/** Which hubs run on the database, and what each of them owns. */
export const migration0006: Migration = {
  name: '0006-instances',
  async up({ schema }) {
    await schema
      .createTable('instances')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('name', 'text', (column) => column.notNull().unique())
      .addColumn('url', 'text')
      .addColumn('host', 'text', (column) => column.notNull())
      .addColumn('machine_id', 'text', (column) => column.notNull())
      .addColumn('pid', 'bigint', (column) => column.notNull())
      .addColumn('process_start', 'text', (column) => column.notNull())
      .addColumn('version', 'text', (column) => column.notNull())
      .addColumn('base_path', 'text', (column) => column.notNull())
      .addColumn('key_digests', 'text', (column) => column.notNull())
      .addColumn('settings_digest', 'text', (column) => column.notNull())
      .addColumn('started_at', 'bigint', (column) => column.notNull())
      .addColumn('lease_until', 'bigint', (column) => column.notNull())
      .execute();
    await schema.alterTable('servers').addColumn('instance_id', 'text').execute();
    await schema.alterTable('servers').addColumn('machine_id', 'text').execute();
    await schema
      .alterTable('servers')
      .addColumn('is_queued', 'integer', (column) => column.notNull().defaultTo(0))
      .execute();
    await schema.createIndex('servers_instance_id').on('servers').column('instance_id').execute();
    await schema.alterTable('managed_processes').addColumn('instance_id', 'text').execute();
  },
};
