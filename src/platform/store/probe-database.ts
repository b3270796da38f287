import { existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Kysely, sql } from 'kysely';
import { pino } from 'pino';
import { StartupError } from '../errors.ts';
import { hubCommand } from '../files/program-folder.ts';
import { newestVersion, versionProblem } from './migrate.ts';

interface StoredKey {
  readonly id: string;
  readonly sealed: string;
}

const readFailure = "select value from settings where key = 'acme:failure'";
const countImported = 'select count(*) as total from imported_tokens';
const readKeys = 'select id, sealed from signing_keys where ends_at is null';

/** What can be learned of a database without changing it. */
export interface DatabaseProbe {
  /** Such as `PostgreSQL 15.4` or `SQLite 3.50`. */
  readonly engine: string;
  /** Undefined where no hub has used it yet. */
  readonly schemaVersion: number | undefined;
  /** The version that this program brings it to. */
  readonly newestSchemaVersion: number;
  /** By how much its clock is ahead of this machine's, in ms; undefined where it is the same clock. */
  readonly clockAheadMs: number | undefined;
  /** How long it took to answer, in ms. */
  readonly answeredInMs: number;
  /** Keys that sign ID tokens and have not ended, as they are stored. */
  readonly signingKeys: readonly StoredKey[];
  /** Why the last attempt to get a certificate by ACME failed, as it is stored. */
  readonly acmeFailure: string | undefined;
  /** How many tokens of a JupyterHub were taken over and not used since. */
  readonly unusedImportedTokens: number;
  /** What would keep a hub from working with it, in a sentence. */
  readonly problem: string | undefined;
}

/** Looks at the database of a URL; it creates and migrates nothing. Throws StartupError. */
export async function probeDatabase(url: string, directory: string): Promise<DatabaseProbe> {
  const path = url.replace(/^sqlite:/, '');
  return path === url ? await probePostgres(url) : probeSqlite(path, directory);
}

async function probePostgres(url: string): Promise<DatabaseProbe> {
  const { openPostgresConnection } = await import('./postgres-connection.ts');
  const log = pino({ level: 'silent' });
  const { kysely, close, explain } = openPostgresConnection<unknown>({ url, log });
  try {
    const startedAt = performance.now();
    const { rows } = await sql<{
      version: string;
      now: number;
      standby: boolean;
      known: boolean;
      keyed: boolean;
      imported: boolean;
    }>`
      select current_setting('server_version') as version,
             (extract(epoch from clock_timestamp()) * 1000)::bigint as now,
             pg_is_in_recovery() as standby,
             to_regclass('hub_schema') is not null as known,
             to_regclass('signing_keys') is not null as keyed,
             to_regclass('imported_tokens') is not null as imported`.execute(kysely);
    const answeredInMs = performance.now() - startedAt;
    const [row] = rows;
    if (row === undefined) throw new StartupError('it gives no answer');
    const schemaVersion = row.known ? await readVersion(kysely) : undefined;
    return {
      engine: `PostgreSQL ${row.version}`,
      schemaVersion,
      newestSchemaVersion: newestVersion(),
      // It told the time somewhere between question and answer.
      clockAheadMs: row.now - (Date.now() - answeredInMs / 2),
      answeredInMs,
      acmeFailure: row.known
        ? (await sql.raw<{ value: string }>(readFailure).execute(kysely)).rows[0]?.value
        : undefined,
      signingKeys: row.keyed ? (await sql.raw<StoredKey>(readKeys).execute(kysely)).rows : [],
      unusedImportedTokens: row.imported
        ? ((await sql.raw<{ total: number }>(countImported).execute(kysely)).rows[0]?.total ?? 0)
        : 0,
      problem: row.standby
        ? 'it is a standby, which takes no changes: name the primary'
        : versionProblem(schemaVersion ?? 0),
    };
  } catch (error) {
    throw explain(error);
  } finally {
    await close();
  }
}

async function readVersion(kysely: Kysely<unknown>): Promise<number | undefined> {
  const { rows } = await sql<{ version: number }>`select version from hub_schema`.execute(kysely);
  return rows[0]?.version;
}

function probeSqlite(path: string, directory: string): DatabaseProbe {
  const startedAt = performance.now();
  const file = path === ':memory:' ? path : resolve(directory, path);
  const isThere = file !== ':memory:' && existsSync(file);
  if (file !== ':memory:' && !statSync(dirname(file), { throwIfNoEntry: false })?.isDirectory()) {
    throw new StartupError(`the folder ${dirname(file)} of the database does not exist`);
  }
  const found = isThere
    ? readSqlite(file)
    : {
        schemaVersion: undefined,
        problem: undefined,
        acmeFailure: undefined,
        signingKeys: [],
        unusedImportedTokens: 0,
      };
  return {
    engine: `SQLite ${process.versions['sqlite'] ?? ''}`.trim(),
    newestSchemaVersion: newestVersion(),
    clockAheadMs: undefined,
    ...found,
    answeredInMs: performance.now() - startedAt,
  };
}

function readSqlite(
  file: string,
): Omit<DatabaseProbe, 'engine' | 'newestSchemaVersion' | 'clockAheadMs' | 'answeredInMs'> {
  try {
    using database = new DatabaseSync(file, { readOnly: true, timeout: 2_000 });
    const check = database.prepare('pragma quick_check(1)').get() as { quick_check?: string };
    const has = (name: string) =>
      database.prepare('select 1 from sqlite_master where name = ?').get(name) !== undefined;
    const known = has('hub_schema');
    const row = known ? database.prepare('select version from hub_schema').get() : undefined;
    const schemaVersion = row === undefined ? undefined : Number(row['version']);
    return {
      schemaVersion,
      acmeFailure: known
        ? (database.prepare(readFailure).get()?.['value'] as string | undefined)
        : undefined,
      signingKeys: has('signing_keys')
        ? (database.prepare(readKeys).all() as unknown as StoredKey[])
        : [],
      unusedImportedTokens: has('imported_tokens')
        ? Number(database.prepare(countImported).get()?.['total'])
        : 0,
      problem:
        check.quick_check === 'ok'
          ? versionProblem(schemaVersion ?? 0)
          : `the file is damaged (${check.quick_check}): restore a backup with ${hubCommand('restore')}`,
    };
  } catch (error) {
    throw new StartupError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}
