import { sql } from 'kysely';
import type { HubDatabase } from '../../src/platform/store/database.ts';

/** Lets an SQLite database grow no further than so many pages: it then fails as on a full disk. */
export async function limitPages(database: HubDatabase, pages: number): Promise<void> {
  await sql.raw(`PRAGMA max_page_count = ${pages}`).execute(database.kysely);
}

/** Lets an SQLite database be read and not be written, as on a file system that has gone read-only. */
export async function setReadOnly(database: HubDatabase, isReadOnly: boolean): Promise<void> {
  await sql.raw(`PRAGMA query_only = ${isReadOnly ? 'on' : 'off'}`).execute(database.kysely);
}

/** Keeps everyone else from a table of PostgreSQL; gives what ends that. */
export async function lockTable(
  database: HubDatabase,
  table: string,
): Promise<() => Promise<void>> {
  const locked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const holding = database.transaction(async (transaction) => {
    await sql`lock table ${sql.table(table)} in access exclusive mode`.execute(transaction);
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  return async () => {
    release.resolve();
    await holding;
  };
}
