import type { ProcessIdentity } from '../processes/process-identity.ts';
import type { HubDatabase } from '../store/database.ts';

/** A child that a hub wrote down when it started it. */
export interface ManagedProcess {
  readonly serviceName: string;
  readonly identity: ProcessIdentity;
  readonly startedAt: Date;
}

/** The children of the hub, so that the next hub finds those it left behind. */
export interface ManagedProcessStore {
  remember(serviceName: string, identity: ProcessIdentity, startedAt: Date): Promise<void>;
  forget(serviceName: string): Promise<void>;
  list(): Promise<readonly ManagedProcess[]>;
}

const ownerPrefix = 'service:';

export function createManagedProcessStore({ kysely }: HubDatabase): ManagedProcessStore {
  return {
    async remember(serviceName, { pid, startTime }, startedAt) {
      const values = { pid, start_time: startTime, started_at: startedAt.getTime() };
      await kysely
        .insertInto('managed_processes')
        .values({ owner: ownerPrefix + serviceName, ...values })
        .onConflict((conflict) => conflict.column('owner').doUpdateSet(values))
        .execute();
    },

    async forget(serviceName) {
      await kysely
        .deleteFrom('managed_processes')
        .where('owner', '=', ownerPrefix + serviceName)
        .execute();
    },

    async list() {
      const rows = await kysely
        .selectFrom('managed_processes')
        .selectAll()
        .where('owner', 'like', `${ownerPrefix}%`)
        .execute();
      return rows.map((row) => ({
        serviceName: row.owner.slice(ownerPrefix.length),
        identity: { pid: row.pid, startTime: row.start_time },
        startedAt: new Date(row.started_at),
      }));
    },
  };
}
