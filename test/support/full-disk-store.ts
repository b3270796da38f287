import { sql } from 'kysely';
import type { HubDatabase } from '../../src/store/database.ts';

/** Lets an SQLite database grow no further than so many pages: it then fails as on a full disk. */
export async function limitPages(database: HubDatabase, pages: number): Promise<void> {
  await sql.raw(`PRAGMA max_page_count = ${pages}`).execute(database.kysely);
}
