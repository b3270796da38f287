import type { Migration } from '../migration.ts';
import { tell } from './0007-changes.ts';

/** Who users are beside their name: display name, e-mail address, picture. */
export const migration0012: Migration = {
  name: '0012-user-info',
  async up(database, dialect) {
    const { schema } = database;
    await schema
      .createTable('user_info')
      .addColumn('user_id', 'text', (column) =>
        column.primaryKey().references('users.id').onDelete('cascade'),
      )
      .addColumn('display_name', 'text')
      .addColumn('email', 'text')
      .addColumn('email_verified', 'integer', (column) => column.notNull())
      .addColumn('picture_url', 'text')
      .addColumn('authenticator', 'text')
      .addColumn('search_text', 'text', (column) => column.notNull())
      .execute();
    if (dialect !== 'postgres') {
      // A search for part of a text reads all of them: from here, which is less than the table.
      await schema
        .createIndex('user_info_search')
        .on('user_info')
        .columns(['search_text', 'user_id'])
        .execute();
      return;
    }
    const told = 'user_info_changed';
    await tell(database, {
      table: 'user_info',
      told: { insert: told, update: told, delete: told },
      subject: 'user_id',
    });
  },
};
