import type { Migration } from '../migration.ts';
import { tell } from './0007-changes.ts';

/** What is told to all users at run time: an announcement, and maintenance. */
export const migration0018: Migration = {
  name: '0018-notices',
  async up(database, dialect) {
    await database.schema
      .createTable('notices')
      .addColumn('kind', 'text', (column) => column.primaryKey())
      .addColumn('content', 'text', (column) => column.notNull())
      .addColumn('until', 'bigint')
      .execute();
    if (dialect !== 'postgres') return;
    const told = 'notices_changed';
    await tell(database, { table: 'notices', told: { insert: told, update: told, delete: told } });
  },
};
