import { sql, type Transaction } from 'kysely';

/** Has a function look for tables where the hub does: the session that changes a table may look elsewhere. */
export async function pinSearchPath(
  database: Transaction<unknown>,
  functionName: string,
): Promise<void> {
  await sql
    .raw(
      `do $$ begin
        execute format('alter function ${functionName}() set search_path = %I, pg_temp', current_schema());
      end $$`,
    )
    .execute(database);
}
