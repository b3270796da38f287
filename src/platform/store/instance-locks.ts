import { join, resolve } from 'node:path';
import type { Config } from '../config/config.ts';
import { lockDatabase } from './database-lock.ts';
import { takeFileLock } from './file-lock.ts';

/**
 * Makes sure that no other hub of this machine uses what only one can: an SQLite database, and the
 * folder in which the output of services and servers is kept. Throws StartupError, with nothing
 * touched.
 */
export async function takeInstanceLocks(
  { directory, Hub }: Config,
  disposables: AsyncDisposableStack,
): Promise<void> {
  const logDirectory = resolve(directory, Hub.log_dir);
  const logLock = await takeFileLock(
    join(logDirectory, '.hub.lock'),
    (holder) =>
      `Another hub (${holder}) writes to the folder ${logDirectory}. Give each a Hub.log_dir of its own.`,
  );
  disposables.use(logLock);
  const databaseLock = await lockDatabase(Hub.database_url, {
    directory,
    explain: (holder, file) =>
      `Another hub (${holder}) uses the database ${file}. Give each a Hub.database_url of its own, or let them share one in PostgreSQL.`,
  });
  if (databaseLock !== undefined) disposables.use(databaseLock);
}
