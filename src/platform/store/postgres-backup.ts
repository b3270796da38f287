import { sql, type Transaction } from 'kysely';
import { pino } from 'pino';
import { StartupError } from '../errors.ts';
import { type BackupLines, replay, rowsAtOnce, tablesOfVersion } from './backup-rows.ts';
import { endingStatements } from './ending-statements.ts';
import { createSchema } from './migrate.ts';
import { openPostgresConnection } from './postgres-connection.ts';
import type { Restored, RestoreOptions } from './sqlite-backup.ts';

const statementTimeoutMs = 600_000;

const connect = (url: string) =>
  openPostgresConnection<unknown>({ url, log: pino({ level: 'silent' }), statementTimeoutMs });

/** Columns that PostgreSQL numbers, and what it keeps their last number in. */
const numberedColumns = sql<{ table: string; column: string; sequence: string }>`
  select table_name as table, column_name as column,
    pg_get_serial_sequence(quote_ident(table_name), column_name) as sequence
  from information_schema.columns
  where table_schema = current_schema() and is_identity = 'YES' and table_name <> 'changes'`;

/** What a PostgreSQL database has, as it is at one moment, also while hubs write to it. Throws StartupError. */
export async function* linesOfPostgres(url: string): BackupLines {
  const { kysely, close, explain } = connect(url);
  try {
    const version = await versionOf(kysely);
    const tables = await tablesOfVersion(version);
    const transaction = await kysely
      .startTransaction()
      .setIsolationLevel('repeatable read')
      .setAccessMode('read only')
      .execute();
    try {
      yield* linesIn(transaction, version, tables);
    } finally {
      // Nothing is changed in it; a connection that is lost has ended it.
      await transaction
        .rollback()
        .execute()
        .catch(() => {});
    }
  } catch (error) {
    throw explain(error);
  } finally {
    await close();
  }
}

async function* linesIn(
  transaction: Transaction<unknown>,
  version: number,
  tables: readonly string[],
): BackupLines {
  const locked = sql.join(tables.map((name) => sql.table(name)));
  // Before the snapshot: what a migration rewrites after it would look empty.
  await sql`lock table ${locked} in access share mode`.execute(transaction);
  if ((await versionOf(transaction)) !== version)
    throw new StartupError('a newer hub has changed the tables meanwhile: try again');
  yield [JSON.stringify({ version, sequences: await readSequences(transaction) })];
  for (const table of tables) {
    yield [JSON.stringify([table])];
    await sql`declare backup no scroll cursor for
      select row_to_json(line)::text as line from ${sql.table(table)} as line`.execute(transaction);
    for (;;) {
      const { rows } = await sql<{ line: string }>`
        fetch ${sql.lit(rowsAtOnce)} from backup`.execute(transaction);
      if (rows.length === 0) break;
      yield rows.map(({ line }) => line);
    }
    await sql`close backup`.execute(transaction);
  }
}

async function versionOf(database: Parameters<typeof numberedColumns.execute>[0]): Promise<number> {
  const { rows } = await sql<{ version: number }>`select version from hub_schema`.execute(database);
  return rows[0]?.version ?? 0;
}

async function readSequences(transaction: Transaction<unknown>): Promise<Record<string, number>> {
  const sequences: Record<string, number> = {};
  for (const { table, sequence } of (await numberedColumns.execute(transaction)).rows) {
    const { rows } = await sql<{ last: number | null }>`
      select pg_sequence_last_value(${sequence}::regclass) as last`.execute(transaction);
    sequences[table] = rows[0]?.last ?? 0;
  }
  return sequences;
}

/**
 * Makes the tables of a backup in an empty PostgreSQL database, in one transaction. Throws StartupError, with nothing changed,
 * also where there are tables already.
 */
export async function fillPostgres(
  url: string,
  lines: BackupLines,
  { endsTokens }: RestoreOptions,
): Promise<Restored> {
  const { kysely, close, explain } = connect(url);
  let tables: readonly string[] = [];
  let endedCount = 0;
  try {
    await kysely.transaction().execute((transaction) =>
      replay(lines, {
        async create(version) {
          await requireEmpty(transaction);
          await createSchema(transaction, 'postgres', version);
          tables = await tablesOfVersion(version);
          // What they would change is in the backup.
          await switchTriggers('disable', tables, transaction);
        },
        async insert(table, rows) {
          const name = sql.table(table);
          await sql`insert into ${name} overriding system value
            select * from json_populate_recordset(null::${name}, ${`[${rows.join()}]`}::json)`.execute(
            transaction,
          );
        },
        async finish(sequences) {
          if (endsTokens) endedCount = await endTokens(tables, transaction);
          await switchTriggers('enable', tables, transaction);
          for (const numbered of (await numberedColumns.execute(transaction)).rows) {
            const { table, column, sequence } = numbered;
            await sql`select setval(${sequence}::regclass, greatest(last, 1), last > 0) from (
              select greatest(${sequences[table] ?? 0}::bigint, max(${sql.id(column)})) as last
              from ${sql.table(table)}
            ) as numbers`.execute(transaction);
          }
        },
      }),
    );
    return { kept: undefined, endedCount };
  } catch (error) {
    throw explain(error);
  } finally {
    await close();
  }
}

async function endTokens(
  tables: readonly string[],
  transaction: Transaction<unknown>,
): Promise<number> {
  const { counted, others } = endingStatements(tables);
  for (const statement of others) await sql.raw(statement).execute(transaction);
  let count = 0;
  for (const statement of counted)
    count += Number((await sql.raw(statement).execute(transaction)).numAffectedRows ?? 0);
  return count;
}

async function switchTriggers(
  to: 'enable' | 'disable',
  tables: readonly string[],
  transaction: Transaction<unknown>,
): Promise<void> {
  for (const table of tables)
    await sql`alter table ${sql.table(table)} ${sql.raw(to)} trigger user`.execute(transaction);
}

async function requireEmpty(transaction: Transaction<unknown>): Promise<void> {
  const { rows } = await sql`select from information_schema.tables
    where table_schema = current_schema() limit 1`.execute(transaction);
  if (rows.length === 0) return;
  throw new StartupError(
    'there are tables in this database: make an empty one, such as by createdb, and name it in Hub.database_url',
  );
}
