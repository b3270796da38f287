import { sql } from 'kysely';
import type { HubDatabase } from '../../src/store/database.ts';

/** Lets an SQLite database grow no further than so many pages: it then fails as on a full disk. */
export async function limitPages(database: HubDatabase, pages: number): Promise<void> {
  await sql.raw(`PRAGMA max_page_count = ${pages}`).execute(database.kysely);
}

/** Lets an SQLite database be read and not be written, as on a file system that has gone read-only. */
export async function setReadOnly(database: HubDatabase, isReadOnly: boolean): Promise<void> {
  await sql.raw(`PRAGMA query_only = ${isReadOnly ? 'on' : 'off'}`).execute(database.kysely);
}
