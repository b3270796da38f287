import type { HubDatabase } from '../store/database.ts';

/** Counts the servers of all instances. */
export interface ServerCountStore {
  /** By state, without those that are stopped. */
  countByState(): Promise<Readonly<Record<string, number>>>;
}

export function createServerCountStore({ kysely }: HubDatabase): ServerCountStore {
  return {
    async countByState() {
      const rows = await kysely
        .selectFrom('servers')
        .select(['state', ({ fn }) => fn.countAll<number | bigint | string>().as('count')])
        .where('state', '<>', 'stopped')
        .groupBy('state')
        .orderBy('state')
        .execute();
      return Object.fromEntries(rows.map(({ state, count }) => [state, Number(count)]));
    },
  };
}
