import { sql } from 'kysely';
import type { HubDatabase } from './database.ts';
import { jsonRows } from './queries.ts';

/**
 * Notes when rows of a table were last used, in one statement however many there are; a time that is not
 * later than the stored one changes nothing.
 */
export async function recordActivity(
  { kysely, dialect }: Pick<HubDatabase, 'kysely' | 'dialect'>,
  table: 'users' | 'servers',
  entries: ReadonlyMap<string, Date>,
): Promise<void> {
  if (entries.size === 0) return;
  const rows = jsonRows(
    [...entries].map(([id, at]) => [id, at.getTime()]),
    { dialect },
  );
  const rowsOf = sql.table(table);
  // Locked in one order everywhere, so that two processes never wait for each other's rows.
  const lock = dialect === 'postgres' ? sql`order by stored.id for update of stored` : sql``;
  await sql`
    update ${rowsOf} set last_activity_at = entry.used_at
    from (
      select stored.id as entry_id, cast(value ->> 1 as bigint) as used_at
      from ${rows} join ${rowsOf} as stored on stored.id = value ->> 0
      where stored.last_activity_at is null or stored.last_activity_at < cast(value ->> 1 as bigint)
      ${lock}
    ) as entry
    where id = entry.entry_id`.execute(kysely);
}
