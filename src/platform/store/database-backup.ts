import { randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { link, open, realpath, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { pipeline as pipelineOf, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Secret } from '../config/secret.ts';
import { isSealed, openSealed, sealFile } from '../crypto/sealed-file.ts';
import { StartupError } from '../errors.ts';
import { fillSqlite, linesOfFile, linesOfSqlite, textOf } from './backup-rows.ts';
import { lockDatabase } from './database-lock.ts';
import {
  backUpSqlite,
  checkDatabase,
  type Restored,
  type RestoreOptions,
  restoreSqlite,
} from './sqlite-backup.ts';

/** A database as the configuration names it. */
export interface DatabaseLocation {
  /** `Hub.database_url`. */
  readonly url: string;
  /** Folder against which the path of an SQLite file is resolved. */
  readonly directory: string;
}

const suffixes = { sqlite: 'sqlite', postgres: 'jsonl.gz' } as const;

/** What a backup that the hub makes by itself is called: the later, the greater. */
export function backupName(url: string, at: Date): string {
  const suffix = suffixes[url.startsWith('sqlite:') ? 'sqlite' : 'postgres'];
  return `hub-${at.toISOString().slice(0, 19).replaceAll(':', '-')}Z.${suffix}`;
}

const ownName = /^hub-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.(?:sqlite|jsonl\.gz)(?<rest>|\..*)$/;

/** Whether a file is left of a backup of such a name that was killed; it may be in plain text. */
export function isUnfinishedBackup(name: string): boolean {
  return /\.(?:plain|part)(?:-\w+)?$/.test(ownName.exec(name)?.groups?.['rest'] ?? '');
}

export function isBackupName(name: string): boolean {
  return ownName.exec(name)?.groups?.['rest'] === '';
}

/**
 * Writes a backup of a database to a new file of mode 0600, also while a hub runs; with a passphrase encrypted. Of SQLite
 * it is a database, of PostgreSQL compressed JSON lines. Throws StartupError.
 */
export async function backUpDatabase(
  location: DatabaseLocation,
  target: string,
  passphrase?: Secret,
): Promise<void> {
  requireNew(target);
  const source = sqliteFile(location);
  if (source !== undefined && !existsSync(source))
    throw new StartupError(`there is no database ${source}`);
  if (source !== undefined && passphrase === undefined) return backUpSqlite(source, target);
  const name = `${target}.${randomBytes(6).toString('hex')}`;
  const [plain, part] = [`${name}.plain`, `${name}.part`];
  try {
    if (source !== undefined) await backUpSqlite(source, plain);
    const content =
      source === undefined ? await compressedRows(location.url) : createReadStream(plain);
    await (passphrase === undefined
      ? pipeline(content, createWriteStream(part, { flags: 'wx', mode: 0o600, flush: true }))
      : sealFile(content, part, passphrase));
    await link(part, target);
  } catch (thrown) {
    if (thrown instanceof StartupError) throw thrown;
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new StartupError(`the database cannot be copied to ${target}: ${reason}`, {
      cause: thrown,
    });
  } finally {
    for (const path of [plain, part]) await rm(path, { force: true });
  }
}

/** Throws StartupError where the file of a backup is there already. */
export function requireNew(target: string): void {
  if (existsSync(target)) throw new StartupError(`${target} exists already; name another file`);
}

async function compressedRows(url: string): Promise<Readable> {
  const { linesOfPostgres } = await import('./postgres-backup.ts');
  // An error ends both, and whoever reads hears of it.
  return pipelineOf(Readable.from(textOf(linesOfPostgres(url))), createGzip(), () => {});
}

/**
 * Replaces an SQLite database by a backup, while no hub uses it, or fills an empty PostgreSQL database. Each takes the
 * backup of the other. Throws StartupError, with nothing changed, also for an encrypted one without its passphrase.
 */
export async function restoreDatabase(
  location: DatabaseLocation,
  source: string,
  {
    passphrase,
    endsTokens = false,
  }: Partial<RestoreOptions> & { readonly passphrase?: Secret | undefined } = {},
): Promise<Restored> {
  const options = { endsTokens };
  if (!existsSync(source)) throw new StartupError(`there is no file ${source}`);
  if (!(await isSealed(source))) return await restoreFrom(location, source, options);
  if (passphrase === undefined)
    throw new StartupError(`${source} is encrypted: set Hub.backup.passphrase to its passphrase`);
  // Beside the database it is as protected as that is; the folder of the backup may be read-only.
  const beside = sqliteFile(location) ?? resolve(location.directory, 'restore');
  const plain = `${beside}.${randomBytes(6).toString('hex')}.plain`;
  try {
    await openSealed(source, plain, passphrase);
    return await restoreFrom(location, plain, options);
  } catch (thrown) {
    if (thrown instanceof StartupError) throw thrown;
    throw new StartupError(`${source} cannot be restored: ${(thrown as Error).message}`, {
      cause: thrown,
    });
  } finally {
    await rm(plain, { force: true });
  }
}

async function restoreFrom(
  location: DatabaseLocation,
  source: string,
  options: RestoreOptions,
): Promise<Restored> {
  const target = sqliteFile(location);
  const isCompressed = await beginsAsGzip(source);
  if (target === undefined) {
    if (!isCompressed) checkDatabase(source);
    const { fillPostgres } = await import('./postgres-backup.ts');
    const lines = isCompressed ? linesOfFile(source) : linesOfSqlite(source);
    return await fillPostgres(location.url, lines, options);
  }
  using _lock = await lockDatabase(location.url, {
    directory: location.directory,
    explain: (holder, file) => `A hub (${holder}) uses ${file}: stop it first.`,
  });
  // The file itself, where a link leads to it.
  const file = await realpath(target).catch(() => target);
  const fill = (rows: string, path: string) => fillSqlite(path, linesOfFile(rows));
  return await restoreSqlite(source, file, options, isCompressed ? fill : undefined);
}

async function beginsAsGzip(path: string): Promise<boolean> {
  await using file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
  return buffer.equals(Buffer.from([0x1f, 0x8b]));
}

/** Path of the file; undefined for PostgreSQL. */
export function sqliteFile({ url, directory }: DatabaseLocation): string | undefined {
  if (!url.startsWith('sqlite:')) return undefined;
  const path = url.slice('sqlite:'.length);
  if (path === ':memory:') throw new StartupError('a database in memory has no backup');
  return resolve(directory, path);
}
