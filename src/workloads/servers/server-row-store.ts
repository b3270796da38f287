import type { Kysely } from 'kysely';
import type { AuditAction } from '../../platform/audit/actions.ts';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { databaseTimeMs } from '../../platform/store/lease-clock.ts';
import type { Row, RowChange, Tables } from '../../platform/store/tables.ts';
import { readPhrase, type SavedPhrase, savePhrase } from '../../platform/texts/text.ts';
import type { SpawnerState } from '../../plugin/host/spawner.ts';
import type { Server, ServerFailure, ServerInstance, ServerState } from './server.ts';
import { toLimits } from './server-limits-store.ts';

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
