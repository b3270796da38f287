import type { Kysely } from 'kysely';
import type { Logger } from 'pino';
import { StartupError } from '../errors.ts';
import type { ChangeListener } from './change-listeners.ts';
import type { ChangeSubject } from './change-subject.ts';
import { openPostgresDatabase } from './postgres-database.ts';
import { openSqliteDatabase } from './sqlite-database.ts';
import type { Tables } from './tables.ts';

/** The hub's durable state. */
export interface HubDatabase extends AsyncDisposable {
  readonly kysely: Kysely<Tables>;
  readonly dialect: 'sqlite' | 'postgres';
  /**
   * Runs work in one transaction; everything or nothing. Inside, use only the transaction that is
   * handed in: SQLite has one connection, and a query past the transaction would wait for its end.
   */
  transaction<T>(work: (transaction: Kysely<Tables>) => Promise<T>): Promise<T>;
  /**
   * Tells every process on this database (this one at once) that users, roles, groups, sessions or
   * tokens changed. Call it after the change is committed, and with a subject only where nothing
   * else can have lost a right.
   */
  announceChange(subject?: ChangeSubject): void;
  /** Called after any announceChange, here or in another process. Returns how to stop listening. */
  onChange(listener: ChangeListener): () => void;
}

export interface OpenDatabaseOptions {
  /** Folder against which the path of an SQLite file is resolved. */
  readonly directory: string;
  readonly log: Logger;
  /** How long to wait for another process's lock on an SQLite file. */
  readonly lockTimeoutMs?: number;
}

/**
 * Opens the database of a URL (`sqlite:<path>`, `sqlite::memory:`, `postgresql://…`) and brings its
 * schema up to date. Throws a StartupError that tells what is wrong and how to mend it.
 */
export async function openDatabase(
  url: string,
  { directory, log, lockTimeoutMs = 5000 }: OpenDatabaseOptions,
): Promise<HubDatabase> {
  if (url.startsWith('sqlite:')) {
    return await openSqliteDatabase({
      path: url.slice('sqlite:'.length),
      directory,
      log,
      lockTimeoutMs,
    });
  }
  if (/^postgres(ql)?:\/\//.test(url)) return await openPostgresDatabase({ url, log });
  throw new StartupError('Hub.database_url must begin with sqlite: or postgresql://');
}
