import { closeSync, openSync, readSync, truncateSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pid as ownPid } from 'node:process';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { StartupError } from '../errors.ts';
import { makeDirectory } from '../files/make-directory.ts';
import { identifyProcess } from '../process-table/process-table.ts';

/** SQLite result codes (https://www.sqlite.org/rescode.html). */
const sqliteBusy = 5;
const sqliteDamaged = [11, 26];
/** Another process may only be asking who holds the lock. */
const patienceMs = 500;
/** One that has just taken the lock has yet to write that it did. */
const attempts = 4;
/** Where a database file keeps both (https://www.sqlite.org/fileformat.html §1.3). */
const [userVersionOffset, applicationIdOffset] = [60, 68];

/** By path: to open and close such a file would end the lock that this very process has on it. */
const heldHere = new Set<string>();

/**
 * Takes a lock that lasts until it is disposed of or the process ends, however it ends: one that is
 * killed leaves nothing to clear away. The lock is SQLite's on an otherwise empty database; the
 * operating system keeps it. Throws StartupError with what `explain` says of the holder, such as
 * `process 4711`.
 */
export async function takeFileLock(
  path: string,
  explain: (holder: string) => string,
): Promise<Disposable> {
  const file = resolve(path);
  try {
    await makeDirectory(dirname(file), 0o711);
  } catch (thrown) {
    throw notTaken(file, thrown);
  }
  let holder = heldHere.has(file) ? ownPid : undefined;
  for (let attempt = 1; holder === undefined && attempt <= attempts; attempt += 1) {
    const connection = openLocked(file);
    if (connection !== undefined) {
      return {
        [Symbol.dispose]() {
          if (heldHere.delete(file)) connection.close();
        },
      };
    }
    holder = readHolder(file);
  }
  throw new StartupError(explain(holder === undefined ? 'another process' : `process ${holder}`));
}

/**
 * The process that holds a lock, if any does that can be seen from here: not one of another
 * container, whose pid may be that of an innocent process.
 */
export function findLockHolder(path: string): number | undefined {
  const file = resolve(path);
  if (heldHere.has(file)) return ownPid;
  try {
    using database = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    database.prepare('pragma user_version').get();
  } catch (thrown) {
    if (errorCodeOf(thrown) === sqliteBusy) return readHolder(file);
  }
  return undefined;
}

/** Undefined when another process has the lock. */
function openLocked(file: string): DatabaseSync | undefined {
  try {
    const connection = lock(file);
    heldHere.add(file);
    return connection;
  } catch (thrown) {
    if (errorCodeOf(thrown) === sqliteBusy) return undefined;
    throw notTaken(file, thrown);
  }
}

function notTaken(file: string, cause: unknown): StartupError {
  return new StartupError(`the lock ${file} cannot be taken: ${String(cause)}`, { cause });
}

function lock(file: string): DatabaseSync {
  try {
    return beginLock(file);
  } catch (thrown) {
    if (!sqliteDamaged.includes(errorCodeOf(thrown) ?? 0)) throw thrown;
    // What a power cut left of it; nothing but a process id is in there. Another process may have
    // emptied and locked it meanwhile: in another file in its place, both would have the lock.
    truncateSync(file);
    return beginLock(file);
  }
}

function beginLock(file: string): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: patienceMs });
  try {
    // In the exclusive mode the lock outlasts the transaction, as would the shared lock of one that
    // gets no further, and the others would wait for that. Who has the lock stands in the file's
    // head, where others can read it past the lock.
    database.exec(`
      pragma journal_mode = memory;
      pragma synchronous = off;
      begin exclusive;
      pragma locking_mode = exclusive;
      pragma user_version = ${ownPid};
      pragma application_id = ${markOf(ownPid) ?? 0};
      commit;`);
    return database;
  } catch (thrown) {
    database.close();
    throw thrown;
  }
}

/** Only for locks of other processes. */
function readHolder(file: string): number | undefined {
  const descriptor = openSync(file, 'r');
  try {
    const head = Buffer.alloc(100);
    readSync(descriptor, head, 0, head.length, 0);
    const holder = head.readInt32BE(userVersionOffset);
    return markOf(holder) === head.readInt32BE(applicationIdOffset) ? holder : undefined;
  } finally {
    closeSync(descriptor);
  }
}

/** Tells a process from others that had its pid before or have it in another container. */
function markOf(pid: number): number | undefined {
  const identity = identifyProcess(pid);
  return identity && crc32(identity.startTime) | 0;
}

function errorCodeOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('errcode' in thrown)) return undefined;
  // The lower byte of an extended code is the primary one.
  return Number(thrown.errcode) & 0xff;
}
