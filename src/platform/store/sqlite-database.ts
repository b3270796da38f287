import { closeSync, existsSync, openSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Dialect, Kysely, sql } from 'kysely';
import type { Logger } from 'pino';
import { createPeriodic } from '../concurrency/periodic.ts';
import { HubError, StartupError } from '../errors.ts';
import { type Text, text } from '../texts/text.ts';
import { createAuditTrail } from './audit-trail.ts';
import { createChangeListeners } from './change-subject.ts';
import type { HubDatabase } from './database.ts';
import { guardDialect } from './guarded-dialect.ts';
import { migrate } from './migrate.ts';
import { createNodeSqliteDialect } from './node-sqlite-dialect.ts';
import { inTransaction } from './queries.ts';
import { keepCopyBeforeMigration } from './sqlite-backup-retention.ts';
import {
  createDirectEngine,
  createVersionReader,
  openDatabaseFile,
  type SqliteEngine,
} from './sqlite-engine.ts';
import { storageFailureOf } from './storage-error.ts';
import type { Tables } from './tables.ts';
import { createLateEngine, openThreadedEngine } from './threaded-sqlite-engine.ts';

const checkIntervalMs = 1_000;
const shrinkIntervalMs = 5_000;
/** SQLite moves its log into the database at 4 MB; only a long reader lets it grow beyond. */
const maxWalBytes = 16 * 2 ** 20;

const deleted = text`The file of the database was deleted.`;
const replaced = text`The file of the database was replaced.`;

/** Watches the files of an SQLite database that is open. */
export interface SqliteFileWatch extends Disposable {
  /** What was done to the files under the hub, while it is so. */
  readonly problem: Text | undefined;
  /**
   * Begins, once something was read or written: the files are there then. `checkpoint` empties the log
   * into the database and truncates it.
   */
  start(checkpoint: () => Promise<void>): void;
}

/**
 * What SQLite writes into a file that was deleted or replaced is lost with the process, and SQLite
 * does not tell. Nor does it shrink a log that a long reader has made large.
 */
function createSqliteFileWatch(options: {
  readonly file: string;
  readonly log: Logger;
}): SqliteFileWatch {
  const { file, log } = options;
  const walFile = `${file}-wal`;
  const paths = [file, walFile, `${file}-shm`];
  const opened = new Map<string, Stats>();
  const periodics: Disposable[] = [];
  let problem: Text | undefined;

  function note(path: string, found: Stats | undefined): void {
    if (found !== undefined) opened.set(path, found);
  }

  function problemOf(path: string): Text | undefined {
    const found = statIfThere(path);
    const before = opened.get(path);
    if (before === undefined) {
      note(path, found);
      return undefined;
    }
    if (found === undefined) return deleted;
    if (found.ino === before.ino && found.dev === before.dev) return undefined;
    return replaced;
  }

  function check(): void {
    let found: Text | undefined;
    for (const path of paths) found ??= problemOf(path);
    if (found === problem) return;
    problem = found;
    if (problem === undefined) log.info({ file }, 'database file is there again');
    else
      log.error(
        { file },
        `${problem} Nothing is written any more: put the file back and restart the hub`,
      );
  }

  return {
    get problem() {
      return problem;
    },
    start(checkpoint) {
      for (const path of paths) note(path, statIfThere(path));
      periodics.push(
        createPeriodic({
          intervalMs: checkIntervalMs,
          work: check,
          onError: (error) => log.warn({ err: error, file }, 'could not look at the database file'),
        }),
        createPeriodic({
          intervalMs: shrinkIntervalMs,
          async work() {
            const wal = statIfThere(walFile);
            if (problem === undefined && wal !== undefined && wal.size > maxWalBytes) {
              await checkpoint();
            }
          },
          onError: (error) => log.debug({ err: error, file }, 'could not shrink the log'),
        }),
      );
    },
    [Symbol.dispose]() {
      for (const periodic of periodics) periodic[Symbol.dispose]();
    },
  };
}

/** The system knows of an open file at once: to have a thread ask wakes three of the process each time. */
function statIfThere(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

const queueTimeoutMs = 15_000;

export interface SqliteConnectionOptions {
  /** `:memory:` or a path. */
  readonly path: string;
  readonly directory: string;
  readonly lockTimeoutMs: number;
  readonly log: Logger;
  /** Where the path stands in the configuration. */
  readonly setting?: string;
}

/** An open SQLite file. */
export interface SqliteConnection<Tables> {
  readonly kysely: Kysely<Tables>;
  /** See `HubDatabase`. */
  readonly longReads: Kysely<Tables>;
  readonly writer: SqliteEngine;
  /** Absolute path; undefined for a database in memory. */
  readonly file: string | undefined;
  readonly isInMemory: boolean;
  close(): Promise<void>;
  /** To be called once there are tables. */
  watchFile(): void;
  /** See `HubDatabase`. */
  contentVersion(): number | undefined;
  /** Why nothing is written, if the file is not the one any more that was opened. */
  problem(): Text | undefined;
  /** Turns what went wrong during the start into a StartupError that names the file. */
  explain(thrown: unknown): Error;
}

/** Opens an SQLite file, and makes it when it is not there. Throws a StartupError. */
export async function openSqliteConnection<Tables>({
  path,
  directory,
  lockTimeoutMs,
  log,
  setting = 'Hub.database_url',
}: SqliteConnectionOptions): Promise<SqliteConnection<Tables>> {
  const isInMemory = path === ':memory:';
  const file = isInMemory ? path : resolve(directory, path);
  const engines = isInMemory
    ? {
        writer: createDirectEngine(openDatabaseFile({ file, lockTimeoutMs })),
        contentVersion: () => undefined,
      }
    : await openEngines(file, { lockTimeoutMs, setting });
  const watch = isInMemory ? undefined : createSqliteFileWatch({ file, log });
  const problem = () => watch?.problem;
  const { dialect, close } = guardDialect(
    createNodeSqliteDialect({
      writer: engines.writer,
      ...('reader' in engines ? { reader: engines.reader } : {}),
      queueTimeoutMs,
      problem,
    }),
  );
  const kysely = new Kysely<Tables>({ dialect });
  const long = isInMemory ? undefined : guardDialect(longReadsOf(file, lockTimeoutMs));
  return {
    kysely,
    longReads: long === undefined ? kysely : new Kysely<Tables>({ dialect: long.dialect }),
    watchFile() {
      watch?.start(async () => {
        await sql`pragma wal_checkpoint(truncate)`.execute(kysely);
      });
    },
    async close() {
      watch?.[Symbol.dispose]();
      await long?.close();
      await close();
    },
    contentVersion: engines.contentVersion,
    problem,
    writer: engines.writer,
    file: isInMemory ? undefined : file,
    isInMemory,
    explain: (thrown) => explain(thrown, file, setting),
  };
}

/** How long a read may stop the main thread for a lock, before the thread of the writer waits for it. */
const shortLockMs = 20;

/** Its one connection only reads, in a thread that is begun when there is need of it. */
function longReadsOf(file: string, lockTimeoutMs: number): Dialect {
  const options = { file, lockTimeoutMs, isReadOnly: true };
  const writer = createLateEngine(() => openThreadedEngine(options));
  return createNodeSqliteDialect({ writer, queueTimeoutMs });
}

async function openEngines(
  file: string,
  { lockTimeoutMs, setting }: { readonly lockTimeoutMs: number; readonly setting: string },
): Promise<{
  readonly writer: SqliteEngine;
  readonly reader: SqliteEngine;
  readonly contentVersion: () => number | undefined;
}> {
  const folder = dirname(file);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new StartupError(
      `the folder ${folder} of the database does not exist: make it, or correct ${setting}`,
    );
  }
  let writer: SqliteEngine | undefined;
  try {
    // No one else on the machine needs to read it; the -wal and -shm files get the same mode.
    if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
    writer = await openThreadedEngine({ file, lockTimeoutMs });
    const database = openDatabaseFile({ file, lockTimeoutMs: shortLockMs, isReadOnly: true });
    const contentVersion = createVersionReader(database);
    return { writer, reader: createDirectEngine(database), contentVersion };
  } catch (error) {
    await writer?.close();
    throw explain(error, file, setting);
  }
}

function explain(thrown: unknown, file: string, setting: string): Error {
  if (thrown instanceof StartupError) return new StartupError(`${file}: ${thrown.message}`);
  const error = thrown instanceof HubError ? thrown.cause : thrown;
  if (!(error instanceof Error)) return new StartupError(`${file}: ${String(error)}`);
  const { code } = error as { code?: unknown };
  const problem =
    code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
      ? 'read_only'
      : storageFailureOf(error);
  switch (problem) {
    case 'read_only':
    case 'unreachable':
      return new StartupError(
        `the database ${file} cannot be written: give the hub's account the right to write the ` +
          'file and its folder, or make room if their disk is full',
        { cause: error },
      );
    case 'locked':
      return new StartupError(
        `the database ${file} is locked by another process: end the program that holds it`,
        { cause: error },
      );
    case 'full':
      return new StartupError(`the disk of the database ${file} is full: make room`, {
        cause: error,
      });
    case 'corrupt':
      return new StartupError(
        `${file} is damaged or not an SQLite database: restore a backup, or correct ${setting}`,
        { cause: error },
      );
    case 'refused':
    case 'overloaded':
    case 'invalid_text':
    case 'other':
    case undefined:
      return new StartupError(`the database ${file} cannot be used: ${error.message}`, {
        cause: error,
      });
  }
}

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
    : await watchOtherProcesses(
        { writer, contentVersion },
        {
          onChange: () => listeners.callAll({ kind: 'all' }),
          log,
        },
      );

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
    changeFeed: { knownAtMs: () => performance.now(), isLost: () => false, lossCount: 0 },
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
 * value changes with each commit made over another connection than the one that is asked.
 */
async function watchOtherProcesses(
  { writer, contentVersion }: Pick<SqliteConnection<unknown>, 'writer' | 'contentVersion'>,
  { onChange, log }: { readonly onChange: () => void; readonly log: Logger },
): Promise<() => void> {
  const read = async () => {
    const { rows } = await writer.run('pragma data_version', []);
    return (rows as { data_version: number }[])[0]?.data_version;
  };
  let content = contentVersion();
  let version = await read();
  const polling = createPeriodic({
    intervalMs: changePollMs,
    async work() {
      // Without any commit, there is nothing to wake the thread of the writer for.
      const seen = contentVersion();
      if (seen !== undefined && seen === content) return;
      const current = await read();
      content = seen;
      if (current === version) return;
      version = current;
      onChange();
    },
    onError: (error) => log.debug({ err: error }, 'could not poll database changes'),
  });
  return () => polling[Symbol.dispose]();
}
