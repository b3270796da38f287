import type { Migration } from '../migration.ts';
import { tell } from './0007-changes.ts';

/** Managed services that stay stopped until they are started by hand. */
export const migration0017: Migration = {
  name: '0017-service-stops',
  async up(database, dialect) {
    await database.schema
      .createTable('service_stops')
      .addColumn('name', 'text', (column) => column.primaryKey())
      .addColumn('definition_digest', 'text', (column) => column.notNull())
      .addColumn('stopped_by', 'text')
      .addColumn('stopped_at', 'bigint', (column) => column.notNull())
      .execute();
    if (dialect !== 'postgres') return;
    const kind = 'services_changed';
    const told = { insert: kind, update: kind, delete: kind };
    await tell(database, { table: 'service_stops', told });
  },
};
