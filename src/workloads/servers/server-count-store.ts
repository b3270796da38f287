import { sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { leaseHasEnded } from '../../platform/store/lease-clock.ts';

/** Counts the servers of all instances. */
export interface ServerCountStore {
  /**
   * By state, without those that are stopped; `unreachable` where the instance of one is away, `failed` of those whose
   * last start or run did.
   */
  countByState(): Promise<Readonly<Record<string, number>>>;
}

export function createServerCountStore(database: HubDatabase): ServerCountStore {
  return {
    async countByState() {
      const isAway = leaseHasEnded(database, 'servers.instance_id');
      const state = sql<string>`case when servers.state = 'stopped' then 'failed'
        when ${isAway} then 'unreachable' else servers.state end`;
      const rows = await database.kysely
        .selectFrom('servers')
        .select([
          state.as('shown'),
          ({ fn }) => fn.countAll<number | bigint | string>().as('count'),
        ])
        .where(({ eb, or }) =>
          or([eb('servers.state', '<>', 'stopped'), eb('servers.failure', 'is not', null)]),
        )
        .groupBy('shown')
        .orderBy('shown')
        .execute();
      return Object.fromEntries(rows.map(({ shown, count }) => [shown, Number(count)]));
    },
  };
}
