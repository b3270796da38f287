import { type RawBuilder, sql } from 'kysely';
import type { HubDatabase } from './database.ts';

type Dialect = Pick<HubDatabase, 'dialect'>;

/**
 * The time by the clock of the database, in milliseconds since 1970. Leases are measured by it alone: the
 * clocks of the machines may differ.
 */
export function databaseTimeMs({ dialect }: Dialect): RawBuilder<number> {
  return dialect === 'sqlite'
    ? sql<number>`cast(unixepoch('subsec') * 1000 as integer)`
    : sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`;
}

/** Whether the instance that a column names has its lease; false for null. */
export function leaseIsLive(database: Dialect, instanceColumn: string): RawBuilder<boolean> {
  return sql<boolean>`exists (
    select 1 from instances as lease
    where lease.id = ${sql.ref(instanceColumn)} and lease.lease_until > ${databaseTimeMs(database)}
  )`;
}

/** Whether the instance that a column names is known and has no lease; false for null. */
export function leaseHasEnded(database: Dialect, instanceColumn: string): RawBuilder<boolean> {
  return sql<boolean>`exists (
    select 1 from instances as lease
    where lease.id = ${sql.ref(instanceColumn)} and lease.lease_until <= ${databaseTimeMs(database)}
  )`;
}
