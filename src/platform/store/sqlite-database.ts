import type { Logger } from 'pino';
import { monotonicMs } from '../concurrency/monotonic-clock.ts';
import { createPeriodic } from '../concurrency/periodic.ts';
import { inTransaction } from './after-commit.ts';
import { createAuditTrail } from './audit-trail.ts';
import { createChangeListeners } from './change-subject.ts';
import type { HubDatabase } from './database.ts';
import { migrate } from './migrate.ts';
import { keepCopyBeforeMigration } from './sqlite-backup-retention.ts';
import { openSqliteConnection, type SqliteConnectionOptions } from './sqlite-connection.ts';
import type { SqliteEngine } from './sqlite-engine.ts';
import type { Tables } from './tables.ts';

const changePollMs = 500;

/** Opens an SQLite file as the hub's database and brings its schema up to date. */
export async function openSqliteDatabase(
  options: SqliteConnectionOptions & {
    readonly instanceName?: string | undefined;
  },
): Promise<HubDatabase> {
  const { log, instanceName } = options;
  const {
    kysely,
    longReads,
    close,
    writer,
    file,
    isInMemory,
    watchFile,
    problem,
    explain,
    contentVersion,
  } = await openSqliteConnection<Tables>(options);
  try {
    if (file !== undefined) await keepCopyBeforeMigration(kysely, file, log);
    const steps = await migrate({ kysely, dialect: 'sqlite' });
    if (steps.length > 0) log.info({ steps }, 'database schema up to date');
  } catch (error) {
    await close();
    throw explain(error);
  }

  watchFile();
  const listeners = createChangeListeners({ log });
  const audit = createAuditTrail({
    kysely,
    dialect: 'sqlite',
    now: Date.now,
    instanceName,
    log,
  });
  const stopWatching = isInMemory
    ? () => {}
    : await watchOtherProcesses(writer, () => listeners.callAll({ kind: 'all' }), log);

  return {
    kysely,
    urgent: kysely,
    longReads,
    dialect: 'sqlite',
    transaction: (work) => inTransaction(kysely, work),
    audit,
    now: Date.now,
    whileAlone: (_work, run) => run(),
    problem,
    announceChange: listeners.callAll,
    async requestReload(instanceId) {
      listeners.callAll({ kind: 'reload_requested', instanceId });
    },
    onChange: listeners.add,
    // The file is of this machine and this hub.
    changeFeed: { knownAtMs: monotonicMs, isLost: () => false, lossCount: 0 },
    contentVersion,
    async [Symbol.asyncDispose]() {
      await audit.flush();
      stopWatching();
      await close();
    },
  };
}

/**
 * Calls back when another process has committed something. SQLite does not tell, but this pragma's
 * value changes with each commit made over another connection.
 */
async function watchOtherProcesses(
  writer: SqliteEngine,
  onChange: () => void,
  log: Logger,
): Promise<() => void> {
  const read = async () => {
    const { rows } = await writer.run('pragma data_version', []);
    return (rows as { data_version: number }[])[0]?.data_version;
  };
  let version = await read();
  const polling = createPeriodic({
    intervalMs: changePollMs,
    async work() {
      const current = await read();
      if (current === version) return;
      version = current;
      onChange();
    },
    onError: (error) => log.debug({ err: error }, 'could not poll database changes'),
  });
  return () => polling[Symbol.dispose]();
}
