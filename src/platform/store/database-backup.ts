import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { link, open, realpath, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Secret } from '../config/secret.ts';
import { isSealed, openSealed, sealFile } from '../crypto/sealed-file.ts';
import { StartupError } from '../errors.ts';
import { lockDatabase } from './database-lock.ts';
import { backUpSqlite, restoreSqlite } from './sqlite-backup.ts';

const execFileAsync = promisify(execFile);

/** A database as the configuration names it. */
export interface DatabaseLocation {
  /** `Hub.database_url`. */
  readonly url: string;
  /** Folder against which the path of an SQLite file is resolved. */
  readonly directory: string;
  /** The hub's environment, for `pg_dump`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const suffixes = { sqlite: 'sqlite', postgres: 'dump' } as const;

/** What a backup that the hub makes by itself is called: the later, the greater. */
export function backupName(url: string, at: Date): string {
  const suffix = suffixes[url.startsWith('sqlite:') ? 'sqlite' : 'postgres'];
  return `hub-${at.toISOString().slice(0, 19).replaceAll(':', '-')}Z.${suffix}`;
}

/** Whether a file is left of a backup of such a name that was killed; it may be in plain text. */
export function isUnfinishedBackup(name: string): boolean {
  return /\.(?:plain|part)(?:-\w+)?$/.test(name) && isBackupName(name.split('.', 2).join('.'));
}

export function isBackupName(name: string): boolean {
  return /^hub-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.(?:sqlite|dump)$/.test(name);
}

/**
 * Writes a backup of a database to a new file of mode 0600, also while a hub runs; with a passphrase encrypted. PostgreSQL
 * is backed up by `pg_dump`. Throws StartupError.
 */
export async function backUpDatabase(
  location: DatabaseLocation,
  target: string,
  passphrase?: Secret,
): Promise<void> {
  if (passphrase === undefined) return copyDatabase(location, target);
  if (existsSync(target)) throw new StartupError(explainDump({ code: 'EEXIST' }, target));
  const [plain, part] = [`${target}.plain`, `${target}.sealed.part`];
  try {
    await copyDatabase(location, plain);
    await sealFile(plain, part, passphrase);
    await link(part, target);
  } finally {
    for (const path of [plain, part]) await rm(path, { force: true });
  }
}

async function copyDatabase(location: DatabaseLocation, target: string): Promise<void> {
  const source = sqliteFile(location);
  if (source === undefined) return dumpPostgres(location, target);
  if (!existsSync(source)) throw new StartupError(`there is no database ${source}`);
  await backUpSqlite(source, target);
}

/**
 * Replaces an SQLite database by a backup, while no hub uses it; returns where the former one is now. Throws StartupError,
 * also for an encrypted one without its passphrase.
 */
export async function restoreDatabase(
  location: DatabaseLocation,
  source: string,
  passphrase?: Secret,
): Promise<string | undefined> {
  if (!existsSync(source)) throw new StartupError(`there is no file ${source}`);
  if (!(await isSealed(source))) return await restoreFrom(location, source);
  if (passphrase === undefined)
    throw new StartupError(`${source} is encrypted: set Hub.backup.passphrase to its passphrase`);
  const plain = `${source}.plain`;
  await openSealed(source, plain, passphrase);
  let kept: string | undefined;
  try {
    kept = await restoreFrom(location, plain);
  } catch (error) {
    // PostgreSQL's own program needs it.
    if (sqliteFile(location) !== undefined) await rm(plain, { force: true });
    throw error;
  }
  await rm(plain, { force: true });
  return kept;
}

async function restoreFrom(
  location: DatabaseLocation,
  source: string,
): Promise<string | undefined> {
  const target = sqliteFile(location);
  if (target === undefined) {
    throw new StartupError(
      `PostgreSQL restores a backup with its own program: pg_restore --clean --if-exists --dbname=NAME ${source}`,
    );
  }
  using _lock = await lockDatabase(location.url, {
    directory: location.directory,
    explain: (holder, file) => `A hub (${holder}) uses ${file}: stop it first.`,
  });
  // The file itself, where a link leads to it.
  return await restoreSqlite(source, await realpath(target).catch(() => target));
}

/** Undefined for PostgreSQL. */
function sqliteFile({ url, directory }: DatabaseLocation): string | undefined {
  if (!url.startsWith('sqlite:')) return undefined;
  const path = url.slice('sqlite:'.length);
  if (path === ':memory:') throw new StartupError('a database in memory has no backup');
  return resolve(directory, path);
}

async function dumpPostgres({ url, environment }: DatabaseLocation, target: string): Promise<void> {
  const address = new URL(url);
  const password = decodeURIComponent(address.password);
  // Other accounts can read the arguments of a program, not its environment.
  address.password = '';
  const part = `${target}.dump.part`;
  let isMine = false;
  try {
    if (existsSync(target)) throw Object.assign(new Error(), { code: 'EEXIST' });
    // Before pg_dump, which would make it readable by others.
    await (await open(part, 'wx', 0o600)).close();
    isMine = true;
    await execFileAsync(
      'pg_dump',
      ['--format=custom', '--no-password', `--file=${part}`, `--dbname=${address.href}`],
      { env: { ...environment, ...(password !== '' && { PGPASSWORD: password }) } },
    );
    await link(part, target);
  } catch (thrown) {
    throw new StartupError(explainDump(thrown, target), { cause: thrown });
  } finally {
    if (isMine) await rm(part, { force: true });
  }
}

function explainDump(thrown: unknown, target: string): string {
  const { code, stderr, message } = thrown as { code?: unknown; stderr?: string; message: string };
  if (code === 'EEXIST') return `${target} exists already; name another file`;
  if (code === 'ENOENT' && stderr === undefined)
    return `${target} cannot be made: its folder does not exist`;
  if (code === 'ENOENT')
    return 'pg_dump is not installed; it comes with the client programs of PostgreSQL';
  return `the database cannot be backed up: ${stderr?.trim() || message}`;
}
