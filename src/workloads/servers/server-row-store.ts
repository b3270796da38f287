import { type Kysely, sql } from 'kysely';
import type { AuditAction } from '../../platform/audit/actions.ts';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { databaseTimeMs } from '../../platform/store/lease-clock.ts';
import { jsonRows, textsOf } from '../../platform/store/queries.ts';
import type { Row, RowChange, Tables } from '../../platform/store/tables.ts';
import { readPhrase, type SavedPhrase, savePhrase } from '../../platform/texts/text.ts';
import type { SpawnerState } from '../../plugin/host/spawner.ts';
import type { Server, ServerFailure, ServerInstance, ServerState } from './server.ts';
import type { LimitKind } from './time-limits.ts';

/** What may change when a server moves to another state. */
export interface ServerChange {
  readonly url?: string | null;
  readonly spawnerState?: SpawnerState;
  readonly userOptions?: Readonly<Record<string, unknown>>;
  readonly failure?: ServerFailure | null;
  readonly startedAt?: Date | null;
  /** Whether its start waits in a queue of its engine. */
  readonly isQueued?: boolean;
  /** Of a good start. */
  readonly startTime?: StartTime;
}

/** How long a start took, without the time in a queue. */
export interface StartTime {
  readonly ms: number;
  readonly profile: string | undefined;
}

/** Something done to a server; it is found under the name of its user. */
export function serverAuditEvent(
  action: AuditAction,
  { name, user_name }: Pick<ServerRow, 'name' | 'user_name'>,
): AuditEvent {
  return { action, target: { kind: 'server', name: user_name, part: name } };
}

/** What becomes of a server's row when its run ends. */
export function endedNow(): RowChange<'servers'> {
  return { instance_id: null, machine_id: null, is_queued: 0, stopped_at: Date.now() };
}

export const instanceColumns = [
  'instances.name as instance_name',
  'instances.machine_id as instance_machine_id',
  'instances.url as instance_url',
  'instances.lease_until as lease_until',
] as const;

/** Rows for `toServer`. */
export function selectServers(database: HubDatabase, on: Kysely<Tables> = database.kysely) {
  return on
    .selectFrom('servers')
    .innerJoin('users', 'users.id', 'servers.user_id')
    .leftJoin('instances', 'instances.id', 'servers.instance_id')
    .selectAll('servers')
    .select(['users.name as user_name', ...instanceColumns, databaseTimeMs(database).as('now')]);
}

export function toRowChange(change: ServerChange): RowChange<'servers'> {
  const row: RowChange<'servers'> = {};
  if (change.url !== undefined) row.url = change.url;
  if (change.spawnerState !== undefined) row.spawner_state = JSON.stringify(change.spawnerState);
  if (change.userOptions !== undefined) row.user_options = JSON.stringify(change.userOptions);
  if (change.failure !== undefined) row.failure = change.failure && writeFailure(change.failure);
  if (change.isQueued !== undefined) row.is_queued = change.isQueued ? 1 : 0;
  if (change.startTime !== undefined) {
    row.start_ms = Math.round(change.startTime.ms);
    row.start_profile = change.startTime.profile ?? '';
  }
  if (change.startedAt !== undefined) row.started_at = change.startedAt?.getTime() ?? null;
  return row;
}

type ServerRow = Row<'servers'> & {
  readonly user_name: string;
  readonly instance_name: string | null;
  readonly instance_machine_id: string | null;
  readonly instance_url: string | null;
  readonly lease_until: number | null;
  readonly now: number;
};

/** A hub of an earlier version beside this one notes starts, but not ends. */
function stoppedAtOf({ state, stopped_at, starting_at }: ServerRow): Date | undefined {
  const isOfLastRun = stopped_at !== null && stopped_at >= (starting_at ?? 0);
  return state === 'stopped' && isOfLastRun ? new Date(stopped_at) : undefined;
}

export function toServer(row: ServerRow): Server {
  const lastFailure = row.failure === null ? undefined : readFailure(row.failure);
  return {
    id: row.id,
    userId: row.user_id,
    userName: row.user_name,
    name: row.name,
    displayName: row.display_name ?? undefined,
    state: row.state as ServerState,
    url: row.url ?? undefined,
    spawnerState: JSON.parse(row.spawner_state) as SpawnerState,
    userOptions: JSON.parse(row.user_options) as Record<string, unknown>,
    failure: row.state === 'stopped' ? lastFailure : undefined,
    lastFailure,
    createdAt: new Date(row.created_at),
    startingAt: toDate(row.starting_at),
    startedAt: toDate(row.started_at),
    stoppedAt: stoppedAtOf(row),
    lastActivityAt: toDate(row.last_activity_at),
    instance: toInstance(row),
    machineId: row.machine_id ?? undefined,
    pausedAt: row.state === 'running' ? toDate(row.paused_at) : undefined,
    ...toLimits(row),
  };
}

function toInstance(row: ServerRow): ServerInstance | undefined {
  if (row.instance_id === null) return undefined;
  const leaseUntilMs = row.lease_until ?? 0;
  return {
    id: row.instance_id,
    name: row.instance_name ?? '',
    machineId: row.instance_machine_id ?? '',
    url: row.instance_url ?? undefined,
    isLive: leaseUntilMs > row.now,
    leaseUntil: new Date(leaseUntilMs),
  };
}

function writeFailure({ message, at, output }: ServerFailure): string {
  return JSON.stringify({ message: savePhrase(message), at, output });
}

function readFailure(json: string): ServerFailure {
  const { message, at, output } = JSON.parse(json) as Record<'at', string> &
    Pick<ServerFailure, 'output'> & { readonly message: SavedPhrase };
  return { message: readPhrase(message), at: new Date(at), output };
}

function toDate(ms: number | null): Date | undefined {
  return ms === null ? undefined : new Date(ms);
}

/** What the limits of a running server depend on; times in milliseconds since 1970. */
export interface WatchedServer {
  readonly id: string;
  readonly startedAt: number;
  readonly lastActivityAt: number | null;
  readonly idleTimeoutMs: number | null;
  readonly maxAgeMs: number | null;
  readonly idleFrom: number | null;
  readonly ageFrom: number | null;
  readonly keptUntil: number | null;
  readonly pausedAt: number | null;
  /** Those that were asked about. */
  readonly groups: readonly string[];
}

/** What is stored of the time of a server. */
export type LimitRecord = Pick<
  WatchedServer,
  'id' | 'lastActivityAt' | 'idleTimeoutMs' | 'maxAgeMs' | 'idleFrom' | 'ageFrom' | 'keptUntil'
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
  /**
   * Stores limits and times; a last activity that is stored is only ever put back, and what a user has chosen since the
   * servers were listed stays.
   */
  keep(records: readonly (LimitRecord & { readonly keptBefore: number | null })[]): Promise<void>;
  /** Notes that a running server of an instance is paused, or no more; false where that is no news. */
  setPaused(instanceId: string, id: string, isPaused: boolean): Promise<boolean>;
  /** Keeps a running server for so long from now on; 0 keeps it no longer. */
  keepRunning(id: string, ms: number): Promise<void>;
  /**
   * Notes of servers that a limit ends them. Returns the ids of those that still run at this instance and were neither
   * used, kept nor paused since they were listed.
   */
  end(
    instanceId: string,
    ended: readonly (Pick<WatchedServer, 'id' | 'lastActivityAt' | 'keptUntil'> & {
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
          'kept_until as keptUntil',
          'paused_at as pausedAt',
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
          record.keptUntil ?? nothing,
          record.keptBefore ?? nothing,
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
            else servers.last_activity_at end,
          kept_until = case
            when servers.kept_until = entry.kept_before then entry.kept_until
            else servers.kept_until end
        from (
          select stored.id as entry_id, ${field(1)} as idle_timeout, ${field(2)} as max_age,
            ${field(3)} as idle_from, ${field(4)} as age_from, ${field(5)} as used_at,
            ${field(6)} as kept_until, ${field(7)} as kept_before
          from ${rows} join servers as stored on stored.id = value ->> 0
          ${lock}
        ) as entry
        where id = entry.entry_id and state = 'running'`.execute(kysely);
    },

    async setPaused(instanceId, id, isPaused) {
      const { numUpdatedRows } = await kysely
        .updateTable('servers')
        .set({ paused_at: isPaused ? databaseTimeMs(database) : null, stop_reason: null })
        .where('id', '=', id)
        .where('instance_id', '=', instanceId)
        .where('state', '=', 'running')
        .where('paused_at', isPaused ? 'is' : 'is not', null)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },

    async keepRunning(id, ms) {
      await kysely
        .updateTable('servers')
        .set({ kept_until: ms === 0 ? null : sql`${databaseTimeMs(database)} + ${Math.round(ms)}` })
        .where('id', '=', id)
        .where('state', '=', 'running')
        .execute();
    },

    async end(instanceId, ended) {
      if (ended.length === 0) return [];
      const rows = jsonRows(
        ended.map(({ id, lastActivityAt, keptUntil, reason }) => [
          id,
          reason,
          lastActivityAt ?? nothing,
          keptUntil ?? nothing,
        ]),
        database,
      );
      const result = await sql<{ id: string }>`
        update servers set stop_reason = entry.reason
        from (
          select stored.id as entry_id, value ->> 1 as reason, cast(value ->> 2 as bigint) as used_at,
            cast(value ->> 3 as bigint) as kept_until
          from ${rows} join servers as stored on stored.id = value ->> 0
          ${lock}
        ) as entry
        where id = entry.entry_id and state = 'running' and instance_id = ${instanceId}
          and (entry.reason <> 'idle_timeout' or (paused_at is null and coalesce(last_activity_at, ${sql.lit(nothing)}) = entry.used_at
            and coalesce(servers.kept_until, ${sql.lit(nothing)}) = entry.kept_until))
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
  kept_until: null,
  paused_at: null,
  stop_reason: null,
} as const;

/** What the row of a server says of its limits. */
function toLimits(row: Row<'servers'>): Pick<Server, 'limits' | 'stoppedBy'> {
  const { idle_timeout_ms: idleTimeoutMs, max_age_ms: maxAgeMs } = row;
  const hasLimits = idleTimeoutMs !== null || maxAgeMs !== null;
  return {
    limits: hasLimits
      ? {
          idleTimeoutMs: idleTimeoutMs ?? undefined,
          maxAgeMs: maxAgeMs ?? undefined,
          idleFrom: toDate(row.idle_from),
          ageFrom: toDate(row.age_from),
          keptUntil: toDate(row.kept_until),
        }
      : undefined,
    stoppedBy: (row.stop_reason ?? undefined) as LimitKind | undefined,
  };
}

/** The profile among stored choices. */
export function profileIn(options: string): string | undefined {
  const { profile } = JSON.parse(options) as { readonly profile?: unknown };
  return typeof profile === 'string' ? profile : undefined;
}
