import type { Migration } from '../migration.ts';
import { tell } from './0007-changes.ts';

/** Services that are added over the API. */
export const migration0011: Migration = {
  name: '0011-runtime-services',
  async up(database, dialect) {
    await database.schema
      .createTable('runtime_services')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('client_id', 'text', (column) => column.notNull().unique())
      .addColumn('token_hash', 'text', (column) => column.unique())
      .addColumn('definition', 'text', (column) => column.notNull())
      .addColumn('environment_encrypted', 'text')
      .execute();
    if (dialect !== 'postgres') return;
    const kind = 'runtime_services_changed';
    const told = { insert: kind, update: kind, delete: kind };
    await tell(database, { table: 'runtime_services', told });
  },
};
