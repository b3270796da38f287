import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, chown, link, open, rename, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { StartupError } from '../errors.ts';
import { endingStatements } from './ending-statements.ts';
import { versionProblem } from './migrate.ts';

/** More pages than a database can have: one step, so that no writer makes it begin again. */
const allPages = 2 ** 31 - 1;
const lockTimeoutMs = 10_000;
/** What SQLite keeps beside a database that is open or was not closed. */
const companions = ['', '-wal', '-shm'];

/**
 * Copies an SQLite database to a new file, as it is at one moment, also while a hub writes to it. The
 * copy is complete before it has its name, and readable by its owner alone. Throws StartupError, with
 * nothing left behind, also when there is a file of that name already.
 */
export async function backUpSqlite(source: string, target: string): Promise<void> {
  if (existsSync(target)) throw new StartupError(`${target} exists already; name another file`);
  await using made = await fileFrom(source, target, copyInto);
  // Unlike rename this replaces nothing that has come up meanwhile.
  await link(made.path, target);
  await syncFolder(target);
}

/** Copies a database before its schema changes; replaces an earlier copy of that name. */
export async function keepSqlite(source: string, target: string): Promise<void> {
  await using made = await fileFrom(source, target, copyInto);
  const { mode, uid, gid } = await stat(source);
  await chmod(made.path, mode & 0o777);
  await giveTo(made.path, { uid, gid });
  await rename(made.path, target);
  await syncFolder(target);
}

/** What a database was restored from a backup with. */
export interface Restored {
  /** Where the former database is. */
  readonly kept: string | undefined;
  /** How many tokens and the like were ended. */
  readonly endedCount: number;
}

export interface RestoreOptions {
  /** Whether all tokens and the like of the backup are ended. */
  readonly endsTokens: boolean;
}

/** Makes a database of a backup in an empty file. */
type Fill = (source: string, path: string) => Promise<void>;

/**
 * Replaces a database that no hub uses by a backup. What was there is kept under another name; mode and owner stay.
 * Throws StartupError, with nothing changed, when the backup cannot be used.
 */
export async function restoreSqlite(
  source: string,
  target: string,
  { endsTokens }: RestoreOptions,
  fill: Fill = copyChecked,
): Promise<Restored> {
  await using made = await fileFrom(source, target, fill);
  const endedCount = endsTokens ? endTokens(made.path) : 0;
  const former = await stat(target).catch(() => undefined);
  const owner = former ?? (await stat(dirname(target)));
  if (former !== undefined) await chmod(made.path, former.mode & 0o777);
  await giveTo(made.path, owner);

  const kept = `${target}.replaced-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  if (former !== undefined) mergeLog(target);
  const found = companions.filter((suffix) => existsSync(target + suffix));
  for (const suffix of found) await link(target + suffix, kept + suffix);
  // A log that is left would be read into whatever has the database's name.
  for (const suffix of found.filter(Boolean)) await rm(target + suffix);
  // In one step: where no database is, a hub would make one.
  await rename(made.path, target);
  await syncFolder(target);
  return { kept: former === undefined ? undefined : kept, endedCount };
}

/** Disposing of it removes the file, if it still has this name. */
interface TemporaryFile extends AsyncDisposable {
  readonly path: string;
}

async function copyChecked(source: string, path: string): Promise<void> {
  checkDatabase(source);
  await copyInto(source, path);
}

async function copyInto(source: string, path: string): Promise<void> {
  using database = openReadOnly(source);
  await backup(database, path, { rate: allPages });
  makeSelfContained(path);
}

/** A whole database beside the target. */
async function fileFrom(source: string, target: string, fill: Fill): Promise<TemporaryFile> {
  const path = `${target}.${randomBytes(6).toString('hex')}.part`;
  const made: TemporaryFile = {
    path,
    async [Symbol.asyncDispose]() {
      for (const suffix of [...companions, '-journal']) await rm(path + suffix, { force: true });
    },
  };
  try {
    await using file = await open(path, 'wx', 0o600);
    await fill(source, path);
    checkDatabase(path);
    await file.sync();
    return made;
  } catch (thrown) {
    await made[Symbol.asyncDispose]();
    if (thrown instanceof StartupError) throw thrown;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new StartupError(`${source} cannot be copied to ${target}: ${reason}`, { cause: thrown });
  }
}

/** Has what the log of a database holds in its file, unless that is damaged. */
function mergeLog(path: string): void {
  try {
    using database = new DatabaseSync(path);
    database.exec('pragma wal_checkpoint(truncate)');
  } catch {
    // It is kept as it is, with the log beside it.
  }
}

function endTokens(path: string): number {
  using database = new DatabaseSync(path);
  const tables = database.prepare("select name from sqlite_master where type = 'table'").all();
  const { counted, others } = endingStatements(tables.map(({ name }) => String(name)));
  const run = (statement: string) => Number(database.prepare(statement).run().changes);
  for (const statement of others) run(statement);
  return counted.reduce((sum, statement) => sum + run(statement), 0);
}

/** A copy is in the mode of its source, in which not even a reader leaves the folder as it is. */
function makeSelfContained(path: string): void {
  using database = new DatabaseSync(path);
  database.exec('pragma journal_mode = delete');
}

/** Throws StartupError when a file is not a database of this hub or an earlier one, and whole. */
export function checkDatabase(path: string): void {
  let version: unknown;
  try {
    using database = openReadOnly(path);
    // Looks each entry of each index up: without this, one page of a large file is read many times.
    database.exec('pragma cache_size = -262144');
    const [result] = Object.values(database.prepare('pragma integrity_check(1)').get() ?? {});
    if (result !== 'ok') throw new Error(String(result));
    version = database.prepare('select version from hub_schema').get()?.['version'];
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new StartupError(`${path} is damaged or no database of a hub (${reason})`, {
      cause: thrown,
    });
  }
  const problem = versionProblem(Number(version));
  if (problem !== undefined) throw new StartupError(`${path}: ${problem}`);
}

function openReadOnly(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: lockTimeoutMs });
}

async function giveTo(path: string, { uid, gid }: { uid: number; gid: number }): Promise<void> {
  const own = await stat(path);
  // Only root can, and only root has a reason to: everyone else owns the database.
  if (own.uid !== uid || own.gid !== gid) await chown(path, uid, gid);
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(dirname(path));
  await folder.sync();
}
