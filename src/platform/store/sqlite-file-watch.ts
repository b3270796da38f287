import { type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Logger } from 'pino';
import { createPeriodic } from '../concurrency/periodic.ts';
import { type Text, text } from '../texts/text.ts';

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
export function createSqliteFileWatch(options: {
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

  async function problemOf(path: string): Promise<Text | undefined> {
    const found = await statIfThere(path);
    const before = opened.get(path);
    if (before === undefined) {
      note(path, found);
      return undefined;
    }
    if (found === undefined) return deleted;
    if (found.ino === before.ino && found.dev === before.dev) return undefined;
    return replaced;
  }

  async function check(): Promise<void> {
    let found: Text | undefined;
    for (const path of paths) found ??= await problemOf(path);
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
      for (const path of paths) note(path, statSync(path, { throwIfNoEntry: false }));
      periodics.push(
        createPeriodic({
          intervalMs: checkIntervalMs,
          work: check,
          onError: (error) => log.warn({ err: error, file }, 'could not look at the database file'),
        }),
        createPeriodic({
          intervalMs: shrinkIntervalMs,
          async work() {
            const wal = await statIfThere(walFile);
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

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
