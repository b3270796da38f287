import type { Migration } from '../migration.ts';

/** When the last run of a server ended; of those before, no one noted it. */
export const migration0026: Migration = {
  name: '0026-server-end',
  async up({ schema }, dialect) {
    await schema
      .alterTable('servers')
      .addColumn('stopped_at', dialect === 'postgres' ? 'bigint' : 'integer')
      .execute();
  },
};
