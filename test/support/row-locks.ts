import { sql } from 'kysely';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import type { Tables } from '../../src/platform/store/tables.ts';
import { until } from './test-hub.ts';

/** Holds all rows of a table, so that nobody deletes or changes them, while `work` begins what waits for it. */
export function whileLocked<Result>(
  database: HubDatabase,
  table: keyof Tables,
  work: () => Promise<Result>,
): Promise<Result> {
  return database.transaction(async (transaction) => {
    await sql`select from ${sql.table(table)} for share`.execute(transaction);
    return work();
  });
}

/** Until so many statements of the database wait for one another. */
export async function untilLocksAreAwaited({ kysely }: HubDatabase, count: number): Promise<void> {
  const waiting = sql`select from pg_stat_activity
    where wait_event_type = 'Lock' and datname = current_database()`;
  await until(
    async () => (await waiting.execute(kysely)).rows.length >= count,
    `${count} wait for a lock`,
  );
}
