import type { Migration } from '../migration.ts';

/** How long a server may run, and what its time is counted from. */
export const migration0013: Migration = {
  name: '0013-server-limits',
  async up({ schema }) {
    for (const column of ['idle_timeout_ms', 'max_age_ms', 'idle_from', 'age_from']) {
      await schema.alterTable('servers').addColumn(column, 'bigint').execute();
    }
    await schema.alterTable('servers').addColumn('stop_reason', 'text').execute();
  },
};
