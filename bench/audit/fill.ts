import { sql } from 'kysely';
import { pino } from 'pino';
import { openDatabase } from '../../src/platform/store/open-database.ts';

const rowsAtOnce = 50_000;

/** Makes a database in which so much has happened already: to 10,000 users, a row every second. */
export async function fillAuditLog(options: {
  readonly url: string;
  readonly directory: string;
  readonly rows: number;
}): Promise<void> {
  const { url, directory, rows } = options;
  const log = pino({ level: 'silent' });
  await using database = await openDatabase(url, { directory, log });
  const startedAt = Date.now() - rows * 1000;
  for (let first = 0; first < rows; first += rowsAtOnce) {
    const last = Math.min(first + rowsAtOnce, rows) - 1;
    await sql`
      insert into audit (at, actor_kind, actor_name, token_id, address, action, target_kind, target_name,
        target_part, result, detail, instance)
      with recursive numbers (number) as (
        select cast(${first} as bigint) union all select number + 1 from numbers where number < ${last}
      )
      select cast(${startedAt} as bigint) + number * 1000, 'user', 'user-' || number % 9973,
        'token-' || number % 20011, '127.0.0.1', 'server.start', 'server', 'user-' || number % 9973,
        '', 'done', '{}', 'hub'
      from numbers`.execute(database.kysely);
  }
}
