import { hash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import { advisoryLocks } from '../../platform/store/advisory-locks.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { databaseTimeMs, leaseIsLive } from '../../platform/store/lease-clock.ts';
import type { Tables } from '../../platform/store/tables.ts';
import type { Server, ServerInstance } from './server.ts';
import {
  endedNow,
  type ServerChange,
  selectServers,
  serverAuditEvent,
  toRowChange,
  toServer,
  unlimited,
} from './server-row-store.ts';

export interface LifecycleLimits {
  /** Servers starting at once, at all instances together; 0 for no limit. */
  readonly concurrentSpawns: number;
  /** Servers starting or running at once, at all instances together; 0 for no limit. */
  readonly activeServers: number;
}

/** What came of the attempt to take a server for a start. */
export type ClaimOutcome =
  | 'claimed'
  /** It is not stopped any more, is gone, or has another name. */
  | 'taken'
  | 'too_many_active'
  | 'too_many_starting'
  /** This instance lost its lease. */
  | 'no_lease';

/** A server that was another instance's. */
export interface TakenServer {
  readonly server: Server;
  readonly from: ServerInstance | undefined;
}

/** Which servers are this instance's: each claim is one conditional statement, or under one lock. */
export interface ServerOwnership {
  readonly instanceId: string;
  /** Takes a stopped server for a start, within the limits. */
  claim(
    server: Pick<Server, 'id' | 'name' | 'userId' | 'userName'>,
    change: ServerChange,
    limits: LifecycleLimits,
  ): Promise<ClaimOutcome>;
  /** Whether a server that is not stopped is this instance's. */
  owns(id: string): Promise<boolean>;
  /**
   * Takes over servers of instances without a lease, as far as they can be polled from here: a single one,
   * or as many as `limit` says.
   */
  takeOver(which: { readonly id: string } | { readonly limit: number }): Promise<TakenServer[]>;
  /** Servers of this instance that are not stopped. */
  listOwned(): Promise<Server[]>;
  /** Has the instance that runs a server end it; false when none does. */
  requestStop(id: string): Promise<boolean>;
  /** Gives a server up as stopped, the instance of which has no lease; false when it has. */
  forget(id: string): Promise<boolean>;
  /** What there is, in short; `signature` changes with whatever `listActive` would tell. */
  survey(): Promise<{ readonly signature: string; readonly takeable: number }>;
  /** The signature of a survey that would tell of just these servers. */
  signatureOf(active: readonly Server[]): string;
}

export function createServerOwnership(
  database: HubDatabase,
  instance: {
    readonly id: string;
    /** The machine to which servers started here are bound; undefined where they can be polled from anywhere. */
    readonly machineId: string;
    readonly isMachineBound: boolean;
  },
): ServerOwnership {
  const { kysely, dialect } = database;
  const { id: me, machineId } = instance;
  const isOrphan = sql<boolean>`not ${leaseIsLive(database, 'servers.instance_id')}`;
  const isWithinReach = sql<boolean>`(servers.machine_id is null or servers.machine_id = ${machineId})`;
  const isHeld = sql<boolean>`exists (
    select 1 from instances as own
    where own.id = ${me} and own.lease_until > ${databaseTimeMs(database)}
  )`;

  function locked<T>(key: number, work: (transaction: Kysely<Tables>) => Promise<T>): Promise<T> {
    return database.transaction(async (transaction) => {
      if (dialect === 'postgres') {
        await sql`select pg_advisory_xact_lock(${sql.lit(key)})`.execute(transaction);
      }
      return work(transaction);
    });
  }

  async function limitReached(
    on: Kysely<Tables>,
    limits: LifecycleLimits,
  ): Promise<ClaimOutcome | undefined> {
    const { active, starting } = await on
      .selectFrom('servers')
      .where('state', '!=', 'stopped')
      .select(({ fn }) => [
        fn.countAll<number>().as('active'),
        // One whose instance is gone starts no more, and one that waits in a queue is no load yet.
        sql<number>`coalesce(sum(case when state = 'starting' and is_queued = 0 and not (${isOrphan}) then 1 else 0 end), 0)`.as(
          'starting',
        ),
      ])
      .executeTakeFirstOrThrow();
    const { activeServers, concurrentSpawns } = limits;
    if (activeServers > 0 && Number(active) >= activeServers) return 'too_many_active';
    if (concurrentSpawns > 0 && Number(starting) >= concurrentSpawns) return 'too_many_starting';
    return undefined;
  }

  async function take(
    on: Kysely<Tables>,
    { id, name, userId, userName }: Pick<Server, 'id' | 'name' | 'userId' | 'userName'>,
    change: ServerChange,
  ): Promise<ClaimOutcome> {
    const { numUpdatedRows } = await on
      .updateTable('servers')
      .set({
        ...toRowChange(change),
        ...unlimited,
        starting_at: databaseTimeMs(database),
        state: 'starting',
        instance_id: me,
        machine_id: instance.isMachineBound ? machineId : null,
      })
      .where('id', '=', id)
      .where('state', '=', 'stopped')
      // The start was prepared for these names: renamed in the meantime, it is another server.
      .where('name', '=', name)
      .where(({ exists, selectFrom }) =>
        exists(
          selectFrom('users').select('id').where('id', '=', userId).where('name', '=', userName),
        ),
      )
      .where(isHeld)
      .executeTakeFirst();
    if (numUpdatedRows > 0n) {
      const auditEvent = serverAuditEvent('server.start', { name, user_name: userName });
      // Single statements wait for one another less than transactions: many may start at once.
      if (on === kysely) await database.audit.recordAlone(auditEvent);
      else await database.audit.record(on, auditEvent);
      return 'claimed';
    }
    const { held } = await on.selectNoFrom(isHeld.as('held')).executeTakeFirstOrThrow();
    return held ? 'taken' : 'no_lease';
  }

  return {
    instanceId: me,

    claim(server, change, limits) {
      if (limits.activeServers === 0 && limits.concurrentSpawns === 0) {
        return take(kysely, server, change);
      }
      return locked(
        advisoryLocks.serverStarts,
        async (transaction) =>
          (await limitReached(transaction, limits)) ?? take(transaction, server, change),
      );
    },

    async owns(id) {
      const row = await kysely
        .selectFrom('servers')
        .select('id')
        .where('id', '=', id)
        .where('instance_id', '=', me)
        .where('state', '!=', 'stopped')
        .executeTakeFirst();
      return row !== undefined;
    },

    takeOver: (which) =>
      locked(advisoryLocks.serverTakeover, async (transaction) => {
        let query = selectServers(database, transaction)
          .where('servers.state', '!=', 'stopped')
          .where(isOrphan)
          .where(isWithinReach);
        query = 'id' in which ? query.where('servers.id', '=', which.id) : query.limit(which.limit);
        const found = (await query.execute()).map(toServer);
        if (found.length === 0) return [];
        const taken = await transaction
          .updateTable('servers')
          .set({ instance_id: me })
          .where(
            'id',
            'in',
            found.map(({ id }) => id),
          )
          .where(isOrphan)
          .where(isHeld)
          .returning('id')
          .execute();
        const ids = new Set(taken.map(({ id }) => id));
        await database.audit.record(
          transaction,
          ...found
            .filter(({ id }) => ids.has(id))
            .map(({ name, userName, instance: from }) => ({
              ...serverAuditEvent('server.take_over', { name, user_name: userName }),
              detail: { from: from?.name ?? null },
            })),
        );
        return found
          .filter(({ id }) => ids.has(id))
          .map((server) => ({ server, from: server.instance }));
      }),

    async listOwned() {
      const rows = await selectServers(database)
        .where('servers.instance_id', '=', me)
        .where('servers.state', '!=', 'stopped')
        .execute();
      return rows.map(toServer);
    },

    async requestStop(id) {
      const { numUpdatedRows } = await kysely
        .updateTable('servers')
        .set({ state: 'stopping' })
        .where('id', '=', id)
        .where('state', 'in', ['starting', 'running'])
        .where(leaseIsLive(database, 'servers.instance_id'))
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },

    forget: (id) =>
      locked(advisoryLocks.serverTakeover, async (transaction) => {
        const nothing = toRowChange({ url: null, spawnerState: {}, startedAt: null });
        const { numUpdatedRows } = await transaction
          .updateTable('servers')
          .set({ ...nothing, ...endedNow(), state: 'stopped' })
          .where('id', '=', id)
          .where('state', '!=', 'stopped')
          .where(isOrphan)
          .executeTakeFirst();
        return numUpdatedRows > 0n;
      }),

    async survey() {
      const isLive = sql<boolean>`(lease.lease_until is not null and lease.lease_until > ${databaseTimeMs(database)})`;
      const entry = sql`concat_ws(' ', servers.id, servers.state, servers.instance_id, servers.url, servers.name, users.name, case when ${isLive} then 'live' end)`;
      const digest =
        dialect === 'postgres'
          ? sql<string>`md5(coalesce(string_agg(${entry}, ',' order by servers.id collate "C"), ''))`
          : sql<string>`coalesce(group_concat(${entry}, ',' order by servers.id), '')`;
      const { rows } = await sql<{ signature: string; takeable: number }>`
        select ${digest} as signature,
          coalesce(sum(case when not ${isLive} and ${isWithinReach} then 1 else 0 end), 0) as takeable
        from servers
        join users on users.id = servers.user_id
        left join instances as lease on lease.id = servers.instance_id
        where servers.state != 'stopped'`.execute(kysely);
      const [row] = rows;
      return { signature: row?.signature ?? '', takeable: Number(row?.takeable ?? 0) };
    },

    signatureOf(active) {
      const text = active
        .toSorted(({ id: one }, { id: other }) => (one < other ? -1 : 1))
        .map(({ id, state, instance: owner, url, name, userName }) =>
          [id, state, owner?.id, url, name, userName, owner?.isLive === true ? 'live' : undefined]
            .filter((part) => part !== undefined)
            .join(' '),
        )
        .join(',');
      return dialect === 'postgres' ? hash('md5', text) : text;
    },
  };
}
