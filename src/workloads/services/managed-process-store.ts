import { sql } from 'kysely';
import type { ProcessIdentity } from '../../platform/process-table/process-table.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { leaseIsLive } from '../../platform/store/lease-clock.ts';

/** A child that a hub wrote down when it started it. */
export interface ManagedProcess {
  readonly serviceName: string;
  readonly identity: ProcessIdentity;
  readonly startedAt: Date;
}

/** The children of the hub, so that the next hub finds those it left behind. */
export interface ManagedProcessStore {
  record(serviceName: string, identity: ProcessIdentity, startedAt: Date): Promise<void>;
  /** Forgets what this instance started, or one that is gone. */
  forget(serviceName: string): Promise<void>;
  /** Those that this instance started, and those of instances that are gone. */
  list(): Promise<readonly ManagedProcess[]>;
}

const ownerPrefix = 'service:';

/** As seen by one instance: what others run that have their lease is not its concern. */
export function createManagedProcessStore(
  database: HubDatabase,
  instanceId: string,
): ManagedProcessStore {
  const { kysely } = database;
  const isOfOthers = sql<boolean>`(managed_processes.instance_id is not null
    and managed_processes.instance_id <> ${instanceId}
    and ${leaseIsLive(database, 'managed_processes.instance_id')})`;
  return {
    async record(serviceName, { pid, startTime }, startedAt) {
      const started_at = startedAt.getTime();
      const values = { pid, start_time: startTime, started_at, instance_id: instanceId };
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
        .where(({ not }) => not(isOfOthers))
        .execute();
    },

    async list() {
      const rows = await kysely
        .selectFrom('managed_processes')
        .selectAll()
        .where('owner', 'like', `${ownerPrefix}%`)
        .where(({ not }) => not(isOfOthers))
        .execute();
      return rows.map((row) => ({
        serviceName: row.owner.slice(ownerPrefix.length),
        identity: { pid: row.pid, startTime: row.start_time },
        startedAt: new Date(row.started_at),
      }));
    },
  };
}
