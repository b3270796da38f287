import type { DatabaseSync } from 'node:sqlite';
import type { Logger } from 'pino';
import { createChangeListeners } from './change-listeners.ts';
import type { HubDatabase } from './database.ts';
import { migrate } from './migrate.ts';
import { openSqliteConnection, type SqliteConnectionOptions } from './sqlite-connection.ts';
import type { Tables } from './tables.ts';

const changePollMs = 500;

/** Opens an SQLite file as the hub's database and brings its schema up to date. */
export async function openSqliteDatabase({
  log,
  ...options
}: SqliteConnectionOptions & { readonly log: Logger }): Promise<HubDatabase> {
  const { kysely, close, database, isInMemory, explain } = openSqliteConnection<Tables>(options);
  try {
    const steps = await migrate({ kysely, dialect: 'sqlite' });
    if (steps.length > 0) log.info({ steps }, 'the schema of the database is up to date');
  } catch (error) {
    await close();
    throw explain(error);
  }

  const listeners = createChangeListeners({ log });
  const stopWatching = isInMemory
    ? () => {}
    : watchOtherProcesses(database, () => listeners.callAll(), log);

  return {
    kysely,
    dialect: 'sqlite',
    transaction: (work) => kysely.transaction().execute(work),
    announceChange: listeners.callAll,
    onChange: listeners.add,
    async [Symbol.asyncDispose]() {
      stopWatching();
      await close();
    },
  };
}

/**
 * Calls back when another process has committed something. SQLite tells nobody, but this pragma's
 * value changes with each commit made over another connection.
 */
function watchOtherProcesses(
  database: DatabaseSync,
  onChange: () => void,
  log: Logger,
): () => void {
  const statement = database.prepare('pragma data_version');
  const read = () => Number(statement.get()?.['data_version']);
  let version = read();
  const timer = setInterval(() => {
    try {
      const current = read();
      if (current === version) return;
      version = current;
    } catch (error) {
      log.debug({ err: error }, 'could not ask whether the database changed');
      return;
    }
    onChange();
  }, changePollMs);
  timer.unref();
  return () => clearInterval(timer);
}
