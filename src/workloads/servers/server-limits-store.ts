import { sql } from 'kysely';
import type { HubDatabase } from '../../platform/store/database.ts';
import { jsonRows, textsOf } from '../../platform/store/json-list.ts';
import { databaseTimeMs } from '../../platform/store/lease-clock.ts';
import type { Row } from '../../platform/store/tables.ts';
import type { Server } from './server.ts';
import type { LimitKind } from './time-limits.ts';

/** What the limits of a running server depend on; times in milliseconds since 1970. */
export interface WatchedServer {
  readonly id: string;
  readonly startedAt: number;
  readonly lastActivityAt: number | null;
  readonly idleTimeoutMs: number | null;
  readonly maxAgeMs: number | null;
  readonly idleFrom: number | null;
  readonly ageFrom: number | null;
  /** Those that were asked about. */
  readonly groups: readonly string[];
}

/** What is stored of the time of a server. */
export type LimitRecord = Pick<
  WatchedServer,
  'id' | 'lastActivityAt' | 'idleTimeoutMs' | 'maxAgeMs' | 'idleFrom' | 'ageFrom'
>;

/** Time limits of running servers: each call is one statement, however many there are. */
export interface ServerLimitsStore {
  /** The running servers of an instance, with those of their users' groups that are named; and the time. */
  list(
    instanceId: string,
    groupNames: readonly string[],
  ): Promise<{ readonly servers: readonly WatchedServer[]; readonly nowMs: number | undefined }>;
  /** The profile each was started with, by id. */
  profilesOf(ids: readonly string[]): Promise<ReadonlyMap<string, string | undefined>>;
  /** Stores limits and times; a last activity that is stored is only ever put back. */
  keep(records: readonly LimitRecord[]): Promise<void>;
  /**
   * Notes of servers that a limit ends them. Returns the ids of those that still run at this instance and were not used
   * since they were listed.
   */
  end(
    instanceId: string,
    ended: readonly (Pick<WatchedServer, 'id' | 'lastActivityAt'> & {
      readonly reason: LimitKind;
    })[],
  ): Promise<readonly string[]>;
}

export function createServerLimitsStore(database: HubDatabase): ServerLimitsStore {
  const { kysely, dialect } = database;
  const list = sql.raw(dialect === 'sqlite' ? 'json_group_array' : 'json_agg');
  // The driver would parse JSON that is not cast.
  const asText = sql.raw(dialect === 'sqlite' ? '' : '::text');
  const nothing = -1;
  // Locked in one order everywhere, so that two processes never wait for each other's rows.
  const lock = dialect === 'postgres' ? sql`order by stored.id for update of stored` : sql``;

  return {
    async list(instanceId, groupNames) {
      const groups =
        groupNames.length === 0
          ? sql<string | null>`null`
          : sql<string | null>`(
              select ${list}(member_of.name)${asText}
              from group_members join ${sql.table('groups')} as member_of on member_of.id = group_members.group_id
              where group_members.user_id = servers.user_id and member_of.name in ${textsOf(groupNames, database)}
            )`;
      const rows = await kysely
        .selectFrom('servers')
        .where('instance_id', '=', instanceId)
        .where('state', '=', 'running')
        .where('started_at', 'is not', null)
        .select([
          'id',
          'started_at as startedAt',
          'last_activity_at as lastActivityAt',
          'idle_timeout_ms as idleTimeoutMs',
          'max_age_ms as maxAgeMs',
          'idle_from as idleFrom',
          'age_from as ageFrom',
          groups.as('groups'),
          databaseTimeMs(database).as('now'),
        ])
        .execute();
      const servers = rows.map(({ now: _, ...row }) => ({
        ...row,
        startedAt: row.startedAt ?? 0,
        groups: row.groups === null ? [] : (JSON.parse(row.groups) as string[]),
      }));
      return { servers, nowMs: rows[0]?.now };
    },

    async profilesOf(ids) {
      const rows = await kysely
        .selectFrom('servers')
        .where('id', 'in', textsOf(ids, database))
        .select(['id', 'user_options as options'])
        .execute();
      return new Map(rows.map(({ id, options }) => [id, profileIn(options)]));
    },

    async keep(records) {
      if (records.length === 0) return;
      const rows = jsonRows(
        records.map((record) => [
          record.id,
          record.idleTimeoutMs ?? nothing,
          record.maxAgeMs ?? nothing,
          record.idleFrom ?? nothing,
          record.ageFrom ?? nothing,
          record.lastActivityAt ?? nothing,
        ]),
        database,
      );
      const field = (index: number) =>
        sql`nullif(cast(value ->> ${sql.lit(index)} as bigint), ${sql.lit(nothing)})`;
      await sql`
        update servers set
          idle_timeout_ms = entry.idle_timeout, max_age_ms = entry.max_age,
          idle_from = entry.idle_from, age_from = entry.age_from,
          last_activity_at = case
            when servers.last_activity_at > entry.used_at then entry.used_at
            else servers.last_activity_at end
        from (
          select stored.id as entry_id, ${field(1)} as idle_timeout, ${field(2)} as max_age,
            ${field(3)} as idle_from, ${field(4)} as age_from, ${field(5)} as used_at
          from ${rows} join servers as stored on stored.id = value ->> 0
          ${lock}
        ) as entry
        where id = entry.entry_id and state = 'running'`.execute(kysely);
    },

    async end(instanceId, ended) {
      if (ended.length === 0) return [];
      const rows = jsonRows(
        ended.map(({ id, lastActivityAt, reason }) => [id, reason, lastActivityAt ?? nothing]),
        database,
      );
      const result = await sql<{ id: string }>`
        update servers set stop_reason = entry.reason
        from (
          select stored.id as entry_id, value ->> 1 as reason, cast(value ->> 2 as bigint) as used_at
          from ${rows} join servers as stored on stored.id = value ->> 0
          ${lock}
        ) as entry
        where id = entry.entry_id and state = 'running' and instance_id = ${instanceId}
          and (entry.reason = 'max_age' or coalesce(last_activity_at, ${sql.lit(nothing)}) = entry.used_at)
        returning id`.execute(kysely);
      return result.rows.map(({ id }) => id);
    },
  };
}

/** What a new run knows no more of the limits of the run before. */
export const unlimited = {
  idle_timeout_ms: null,
  max_age_ms: null,
  idle_from: null,
  age_from: null,
  stop_reason: null,
} as const;

/** What the row of a server says of its limits. */
export function toLimits(row: Row<'servers'>): Pick<Server, 'limits' | 'stoppedBy'> {
  const { idle_timeout_ms: idleTimeoutMs, max_age_ms: maxAgeMs } = row;
  const hasLimits = idleTimeoutMs !== null || maxAgeMs !== null;
  return {
    limits: hasLimits
      ? {
          idleTimeoutMs: idleTimeoutMs ?? undefined,
          maxAgeMs: maxAgeMs ?? undefined,
          idleFrom: row.idle_from === null ? undefined : new Date(row.idle_from),
          ageFrom: row.age_from === null ? undefined : new Date(row.age_from),
        }
      : undefined,
    stoppedBy: (row.stop_reason ?? undefined) as LimitKind | undefined,
  };
}

function profileIn(options: string): string | undefined {
  const { profile } = JSON.parse(options) as { readonly profile?: unknown };
  return typeof profile === 'string' ? profile : undefined;
}
