import type { Logger } from 'pino';
import { StartupError } from '../errors.ts';
import type { HubDatabase } from './database.ts';
import { openSqliteDatabase } from './sqlite-database.ts';

export interface OpenDatabaseOptions {
  /** Folder against which the path of an SQLite file is resolved. */
  readonly directory: string;
  readonly log: Logger;
  /** How long to wait for another process's lock on an SQLite file. */
  readonly lockTimeoutMs?: number;
  /** After how long without news from the database nothing remembered may be used. */
  readonly maxStalenessMs?: number;
  /** Name of the instance of the hub, for the audit log; commands have none. */
  readonly instanceName?: string;
  /** Aborted when the hub is about to stop: a database that hangs does not keep it. */
  readonly stopping?: AbortSignal;
}

/**
 * Opens the database of a URL (`sqlite:<path>`, `sqlite::memory:`, `postgresql://…`) and brings its
 * schema up to date. Throws a StartupError that tells what is wrong and how to fix it.
 */
export async function openDatabase(
  url: string,
  {
    directory,
    log,
    lockTimeoutMs = 5000,
    maxStalenessMs = 30_000,
    instanceName,
    stopping,
  }: OpenDatabaseOptions,
): Promise<HubDatabase> {
  if (url.startsWith('sqlite:')) {
    return await openSqliteDatabase({
      path: url.slice('sqlite:'.length),
      directory,
      log,
      lockTimeoutMs,
      instanceName,
    });
  }
  if (/^postgres(ql)?:\/\//.test(url)) {
    const { openPostgresDatabase } = await import('./postgres-database.ts');
    return await openPostgresDatabase({ url, log, maxStalenessMs, instanceName, stopping });
  }
  throw new StartupError('Hub.database_url must begin with sqlite: or postgresql://');
}
