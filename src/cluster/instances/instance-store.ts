import { type Kysely, sql } from 'kysely';
import { advisoryLocks } from '../../platform/store/advisory-locks.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { databaseTimeMs } from '../../platform/store/lease-clock.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import type { Instance, InstanceDescription } from './instance.ts';

/** How long a lease lasts without being renewed. */
export const leaseMs = 15_000;

/** The hubs that run on the database, and until when each of them may. */
export interface InstanceStore {
  /**
   * Enters an instance with a lease, in the place of the one that had its name: what that owned is its
   * own from now on. `judge` sees all the instances there are, and throws to refuse; no other instance
   * comes or goes meanwhile.
   */
  enter(
    instance: InstanceDescription,
    judge: (others: readonly Instance[]) => void,
  ): Promise<Instance | undefined>;
  /** Extends the lease by its full length from now; false when the instance is no longer entered. */
  renew(id: string): Promise<boolean>;
  /** Extends, within a transaction, a lease that has not ended; gives the time by the database's clock, or undefined. */
  renewHeld(on: Kysely<Tables>, id: string): Promise<number | undefined>;
  setSettingsDigest(id: string, settingsDigest: string): Promise<void>;
  /** Ends the lease, and forgets the instance unless servers are still where it left them. */
  leave(id: string): Promise<void>;
  /** Ends the lease of an instance that is known to be gone, so that others need not wait for it. */
  endLease(id: string): Promise<void>;
  /** By name. */
  list(): Promise<readonly Instance[]>;
  /** What the instances own, by their ids. */
  listOwned(): Promise<ReadonlyMap<string, OwnedThings>>;
}

/** What runs at an instance, or did so last. */
export interface OwnedThings {
  /** Servers of users that are not stopped. */
  readonly servers: number;
  /** Names of managed services, in order. */
  readonly services: readonly string[];
}

/** On SQLite, where a lock on the file keeps others out for as long as the process lives. */
const endless = 8_640_000_000_000_000;
/** How long an instance that never came back stays on the list. */
const cachedMs = 7 * 24 * 3600 * 1000;

export function createInstanceStore(database: HubDatabase): InstanceStore {
  const { kysely, urgent, dialect } = database;
  const now = databaseTimeMs(database);
  const leaseEnd =
    dialect === 'sqlite' ? sql<number>`${sql.lit(endless)}` : sql<number>`${now} + ${leaseMs}`;

  async function list(on: Kysely<Tables>): Promise<Instance[]> {
    const rows = await on
      .selectFrom('instances')
      .selectAll()
      .select(now.as('now'))
      .orderBy('name')
      .execute();
    return rows.map(toInstance);
  }

  function purge(on: Kysely<Tables>) {
    return on
      .deleteFrom('instances')
      .where('lease_until', '<', sql<number>`${now} - ${cachedMs}`)
      .where('id', 'not in', ownersOfServers(on))
      .execute();
  }

  function ownersOfServers(on: Kysely<Tables>) {
    return on
      .selectFrom('servers')
      .select((select) => select.ref('instance_id').$notNull().as('id'))
      .where('instance_id', 'is not', null);
  }

  return {
    enter: (instance, judge) =>
      database.transaction(async (transaction) => {
        if (dialect === 'postgres') {
          await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLocks.instances)})`.execute(
            transaction,
          );
        }
        const others = await list(transaction);
        judge(others);
        // The lock on an SQLite file says that no other runs, whatever its name was.
        const replaced =
          dialect === 'sqlite' ? others : others.filter(({ name }) => name === instance.name);
        for (const { id } of replaced) {
          await transaction.deleteFrom('instances').where('id', '=', id).execute();
          for (const table of ['servers', 'managed_processes'] as const) {
            await transaction
              .updateTable(table)
              .set({ instance_id: instance.id })
              .where('instance_id', '=', id)
              .execute();
          }
        }
        await purge(transaction);
        await transaction
          .insertInto('instances')
          .values({ ...toRow(instance), started_at: now, lease_until: leaseEnd })
          .execute();
        return replaced.find(({ name }) => name === instance.name);
      }),

    async renew(id) {
      const result = await urgent
        .updateTable('instances')
        .set({ lease_until: leaseEnd })
        .where('id', '=', id)
        .executeTakeFirst();
      return result.numUpdatedRows > 0n;
    },

    async renewHeld(on, id) {
      const row = await on
        .updateTable('instances')
        .set({ lease_until: leaseEnd })
        .where('id', '=', id)
        .where('lease_until', '>', now)
        .returning(now.as('now'))
        .executeTakeFirst();
      return row && Number(row.now);
    },

    async setSettingsDigest(id, settingsDigest) {
      await kysely
        .updateTable('instances')
        .set({ settings_digest: settingsDigest })
        .where('id', '=', id)
        .execute();
    },

    async leave(id) {
      await kysely
        .updateTable('instances')
        .set({ lease_until: now })
        .where('id', '=', id)
        .execute();
      await kysely
        .deleteFrom('instances')
        .where('id', '=', id)
        .where('id', 'not in', ownersOfServers(kysely))
        .execute();
    },

    async endLease(id) {
      await kysely
        .updateTable('instances')
        .set({ lease_until: now })
        .where('id', '=', id)
        .where('lease_until', '>', now)
        .execute();
    },

    list: () => list(kysely),

    async listOwned() {
      const servers = await kysely
        .selectFrom('servers')
        .select(['instance_id', ({ fn }) => fn.countAll<number | bigint | string>().as('count')])
        .where('state', '<>', 'stopped')
        .where('instance_id', 'is not', null)
        .groupBy('instance_id')
        .execute();
      const services = await kysely
        .selectFrom('service_owners')
        .select(['instance_id', 'name'])
        .orderBy('name')
        .execute();
      const owned = new Map<string, { servers: number; services: string[] }>();
      function of(id: string) {
        const things = owned.get(id) ?? { servers: 0, services: [] };
        owned.set(id, things);
        return things;
      }
      for (const { instance_id, count } of servers) of(instance_id ?? '').servers = Number(count);
      for (const { instance_id, name } of services) of(instance_id).services.push(name);
      return owned;
    },
  };
}

function toRow(instance: InstanceDescription) {
  return {
    id: instance.id,
    name: instance.name,
    url: instance.url ?? null,
    host: instance.host,
    machine_id: instance.machineId,
    pid: instance.process.pid,
    process_start: instance.process.startTime,
    version: instance.version,
    base_path: instance.basePath,
    key_digests: JSON.stringify(instance.keyDigests),
    settings_digest: instance.settingsDigest,
  };
}

function toInstance(row: Row<'instances'> & { readonly now: number }): Instance {
  return {
    id: row.id,
    name: row.name,
    url: row.url ?? undefined,
    host: row.host,
    machineId: row.machine_id,
    process: { pid: row.pid, startTime: row.process_start },
    version: row.version,
    basePath: row.base_path,
    keyDigests: JSON.parse(row.key_digests) as string[],
    settingsDigest: row.settings_digest,
    startedAt: new Date(row.started_at),
    leaseUntil: new Date(row.lease_until),
    isLive: row.lease_until > row.now,
  };
}
