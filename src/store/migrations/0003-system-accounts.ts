import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** The name on the machine under which a user's servers run, kept apart from the user's name. */
export const migration0003: Migration = {
  name: '0003-system-accounts',
  async up(database, dialect) {
    const { schema } = database;
    const name = dialect === 'postgres' ? sql`text collate "C"` : sql`text`;
    await schema.alterTable('users').addColumn('system_account', name).execute();
    await schema
      .createIndex('users_system_account')
      .on('users')
      .column('system_account')
      .unique()
      .execute();
    await schema
      .createTable('retired_system_accounts')
      .addColumn('name', name, (column) => column.primaryKey())
      .addColumn('retired_at', 'bigint', (column) => column.notNull())
      .execute();
    // Until now it followed from the name; whose servers never ran has left nothing there.
    await sql`update users set system_account = name
      where exists (select 1 from servers where servers.user_id = users.id)`.execute(database);
  },
};
