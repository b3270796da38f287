import type { Migration } from '../migration.ts';

/** Passkeys of users (Web Authentication Level 3), by credential id. */
export const migration0020: Migration = {
  name: '0020-passkeys',
  async up({ schema }) {
    await schema
      .createTable('passkeys')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('user_id', 'text', (column) =>
        column.notNull().references('users.id').onDelete('cascade'),
      )
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('public_key', 'text', (column) => column.notNull())
      .addColumn('sign_count', 'bigint', (column) => column.notNull())
      .addColumn('transports', 'text', (column) => column.notNull())
      .addColumn('verifies_user', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('last_used_at', 'bigint')
      .execute();
    await schema.createIndex('passkeys_user').on('passkeys').column('user_id').execute();
  },
};
