import { type Kysely, sql } from 'kysely';
import { type Logger, pino } from 'pino';
import { createPeriodic } from '../concurrency/periodic.ts';
import { StartupError } from '../errors.ts';
import { advisoryLocks } from './advisory-locks.ts';
import type { HubDatabase } from './database.ts';
import {
  createKeyvDatabaseAdapter,
  type KeyvTables,
  purgeExpiredKeys,
} from './keyv-database-adapter.ts';
import { createKeyvSpace, type KeyvSpace, type SharedAdapter } from './keyv-space.ts';
import { probeDatabase } from './probe-database.ts';
import { openSqliteConnection } from './sqlite-database.ts';

const purgeIntervalMs = 60_000;
const purgeLimit = 1000;
const lockTimeoutMs = 5000;
const setting = 'Hub.keyv_url';

/**
 * The hub's expiring state: one key space for each use. Every method throws the HubError
 * `storage_unavailable` when the storage fails. `delete` is true only for the one who deleted the
 * key, so of several processes that take a value with `get` and `delete`, one has it.
 */
export interface KeyvSpaces extends AsyncDisposable {
  /** The same name gives the same values, in every process. */
  space<Value>(name: string): KeyvSpace<Value>;
}

export interface OpenKeyvOptions {
  /** `Hub.keyv_url`; undefined for the hub's own database. */
  readonly url: string | undefined;
  readonly database: HubDatabase;
  readonly directory: string;
  readonly log: Logger;
  /** Aborted when the hub is about to stop: a database that hangs does not keep it. */
  readonly stopping?: AbortSignal;
}

/** Opens the expiring state. Throws a StartupError that tells what is wrong and how to fix it. */
export async function openKeyv(options: OpenKeyvOptions): Promise<KeyvSpaces> {
  const { url, database, log } = options;
  if (url === undefined) {
    return createDatabaseSpaces({
      kysely: database.kysely as unknown as Kysely<KeyvTables>,
      dialect: database.dialect,
      log,
      close: async () => {},
    });
  }
  if (/^rediss?:\/\//.test(url)) {
    const { openKeyvRedis } = await import('./keyv-redis.ts');
    const redis = await openKeyvRedis({ url, log });
    return createSpaces(redis.createAdapter, async () => await redis[Symbol.asyncDispose]());
  }
  return await openOwnDatabase(url, options);
}

/** Asks the store of `Hub.keyv_url` once; it makes no table and no file. Throws StartupError. */
export async function checkExpiringState(url: string, directory: string): Promise<void> {
  if (!/^rediss?:\/\//.test(url)) {
    await probeDatabase(url, directory);
    return;
  }
  const { openKeyvRedis } = await import('./keyv-redis.ts');
  await using _redis = await openKeyvRedis({ url, log: pino({ level: 'silent' }) });
}

async function openOwnDatabase(
  url: string,
  { directory, log, stopping }: OpenKeyvOptions,
): Promise<KeyvSpaces> {
  const isPostgres = /^postgres(ql)?:\/\//.test(url);
  if (!isPostgres && !url.startsWith('sqlite:')) {
    throw new StartupError('Hub.keyv_url must begin with redis://, postgresql:// or sqlite:');
  }
  const connection = isPostgres
    ? (await import('./postgres-connection.ts')).openPostgresConnection<KeyvTables>({
        url,
        log,
        setting,
        stopping,
      })
    : await openSqliteConnection<KeyvTables>({
        path: url.slice('sqlite:'.length),
        directory,
        lockTimeoutMs,
        log,
        setting,
      });
  const { kysely, close, explain } = connection;
  const dialect = isPostgres ? 'postgres' : 'sqlite';
  try {
    await createTable(kysely, dialect);
    if ('watchFile' in connection) connection.watchFile();
  } catch (error) {
    await close();
    throw explain(error);
  }
  return createDatabaseSpaces({ kysely, dialect, log, close });
}

async function createTable(
  kysely: Kysely<KeyvTables>,
  dialect: 'sqlite' | 'postgres',
): Promise<void> {
  await kysely.transaction().execute(async (transaction) => {
    if (dialect === 'postgres') {
      // Two processes that create it at once would disturb each other.
      await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLocks.keyvTable)})`.execute(
        transaction,
      );
    }
    await transaction.schema
      .createTable('keyv')
      .ifNotExists()
      .addColumn('key', dialect === 'postgres' ? sql`text collate "C"` : 'text', (column) =>
        column.primaryKey(),
      )
      .addColumn('value', 'text', (column) => column.notNull())
      .addColumn('expires_at', 'bigint')
      .execute();
    await transaction.schema
      .createIndex('keyv_expires_at')
      .ifNotExists()
      .on('keyv')
      .column('expires_at')
      .execute();
  });
}

interface DatabaseSpacesOptions {
  readonly kysely: Kysely<KeyvTables>;
  readonly dialect: 'sqlite' | 'postgres';
  readonly log: Logger;
  close(): Promise<void>;
}

function createDatabaseSpaces({ kysely, dialect, log, close }: DatabaseSpacesOptions): KeyvSpaces {
  const purging = createPeriodic({
    intervalMs: purgeIntervalMs,
    async work() {
      await purgeExpiredKeys({ kysely, dialect }, purgeLimit);
    },
    onError: (error) => log.warn({ err: error }, 'could not delete expired records'),
  });
  return createSpaces(
    (namespace) => createKeyvDatabaseAdapter({ kysely, dialect, namespace }),
    async () => {
      await purging[Symbol.asyncDispose]();
      await close();
    },
  );
}

function createSpaces(
  createAdapter: (namespace: string) => SharedAdapter,
  close: () => Promise<void>,
): KeyvSpaces {
  const spaces = new Map<string, unknown>();
  return {
    space<Value>(name: string) {
      if (!/^[a-z][a-z0-9-]*$/.test(name))
        throw new TypeError(`${name} is not a name for a key space`);
      const known = spaces.get(name);
      if (known !== undefined) return known as KeyvSpace<Value>;
      const keyv = createKeyvSpace<Value>(name, createAdapter(name));
      spaces.set(name, keyv);
      return keyv;
    },
    [Symbol.asyncDispose]: close,
  };
}
