import type { Migration } from '../migration.ts';

/** How long starts take: since when the last one of each server goes on, and how long the last good one took. */
export const migration0015: Migration = {
  name: '0015-start-times',
  async up({ schema }) {
    for (const column of ['starting_at', 'start_ms']) {
      await schema.alterTable('servers').addColumn(column, 'bigint').execute();
    }
    await schema.alterTable('servers').addColumn('start_profile', 'text').execute();
    await schema
      .createIndex('servers_start_profile')
      .on('servers')
      .columns(['start_profile', 'starting_at'])
      .execute();
  },
};
