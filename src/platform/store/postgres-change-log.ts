import { advisoryLocks } from './advisory-locks.ts';
import type { LoggedChange } from './change-subject.ts';

/** Runs a statement of PostgreSQL and returns its rows. */
export type RunStatement = (
  text: string,
  values: readonly unknown[],
) => Promise<{ readonly rows: readonly unknown[] }>;

/** How far a reader has read. */
export interface LogPosition {
  /** Which transactions had ended (`pg_snapshot`). */
  readonly snapshot: string;
  /** When the server was started: another one, as after a failover, may know other transactions. */
  readonly serverStartedAt: string;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly atMs: number;
}

export interface LogReading {
  readonly position: LogPosition;
  readonly changes: readonly LoggedChange[];
  /** Whether there may have been changes that cannot be told any more. */
  readonly isIncomplete: boolean;
}

/** Rows stay for at least this long after they could be read. */
export const purgeIntervalMs = 600_000;
const maxGapMs = purgeIntervalMs / 2;
/** With more changes, dropping everything is the lesser work. */
const maxChanges = 5_000;

/**
 * Reads what was committed after a position; without one, nothing. One statement sees the log and its own snapshot
 * together, so a transaction is either part of this reading or of a later one, in whatever order they commit. Also
 * sends a notification.
 */
export async function readChangeLog(
  run: RunStatement,
  from: LogPosition | undefined,
  notify: { readonly channel: string; readonly payload: string },
): Promise<LogReading> {
  const { rows } = await run(
    `select
       pg_notify($1, $2),
       pg_current_snapshot()::text as snapshot,
       pg_postmaster_start_time()::text as server_started_at,
       (extract(epoch from clock_timestamp()) * 1000)::bigint as at_ms,
       (select coalesce(json_agg(json_build_object('kind', kind, 'subject', subject)), '[]') from (
         select kind, subject from changes
         where $3::pg_snapshot is not null
           and xid >= pg_snapshot_xmin($3::pg_snapshot)
           and not pg_visible_in_snapshot(xid, $3::pg_snapshot)
           -- Not of a cluster that this one was restored from.
           and pg_visible_in_snapshot(xid, pg_current_snapshot())
         order by id limit ${maxChanges + 1}
       ) as unread) as changes`,
    [notify.channel, notify.payload, from?.snapshot ?? null],
  );
  const [{ snapshot, server_started_at, at_ms, changes }] = rows as [ReadRow];
  return {
    position: { snapshot, serverStartedAt: server_started_at, atMs: at_ms },
    changes,
    isIncomplete:
      from !== undefined &&
      (from.serverStartedAt !== server_started_at ||
        Math.abs(at_ms - from.atMs) > maxGapMs ||
        changes.length > maxChanges),
  };
}

interface ReadRow {
  readonly snapshot: string;
  readonly server_started_at: string;
  readonly at_ms: number;
  readonly changes: readonly LoggedChange[];
}

/**
 * Deletes what could be read already at a position, which is to be a `purgeIntervalMs` old. Does nothing while another
 * instance does it.
 */
export async function purgeChangeLog(run: RunStatement, readAt: LogPosition): Promise<void> {
  await run(
    `with turn as materialized (select pg_try_advisory_xact_lock(${advisoryLocks.changePurge}) as is_mine)
     delete from changes using turn
     where is_mine and xid < pg_snapshot_xmax($1::pg_snapshot)
       and pg_visible_in_snapshot(xid, $1::pg_snapshot)`,
    [readAt.snapshot],
  );
}
