import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { type DatabaseLocation, sqliteFile } from './database-backup.ts';
import { createSettingStore, type SettingStore } from './setting-store.ts';
import type { Tables } from './tables.ts';

const key = 'backup:last';

/** What became of the backups that the hub or `hub backup` made, in milliseconds since 1970. */
export interface LastBackup {
  /** When the last one was done. */
  readonly at?: number;
  readonly file?: string;
  /** When an attempt since then has failed. */
  readonly failedAt?: number;
  readonly problem?: string;
}

export async function findLastBackup(settings: Pick<SettingStore, 'find'>): Promise<LastBackup> {
  return JSON.parse((await settings.find(key)) ?? '{}') as LastBackup;
}

export async function saveLastBackup(
  settings: Pick<SettingStore, 'set'>,
  last: LastBackup,
): Promise<void> {
  await settings.set(key, JSON.stringify(last));
}

/** Days after which the last backup is old where nothing says how often one is made. */
export const oldBackupDays = 2;

/** Reads what is noted, beside whatever hub runs on the database. Throws StartupError. */
export const readLastBackup = (location: DatabaseLocation): Promise<LastBackup> =>
  withSettings(location, findLastBackup);

/** Notes what became of a backup, beside whatever hub runs on the database. Throws StartupError. */
export function noteBackup(
  location: DatabaseLocation,
  done: { readonly file: string } | { readonly problem: string },
): Promise<void> {
  const at = Date.now();
  return withSettings(location, async (settings) =>
    saveLastBackup(
      settings,
      'file' in done
        ? { at, ...done }
        : { ...(await findLastBackup(settings)), failedAt: at, ...done },
    ),
  );
}

async function withSettings<Result>(
  location: DatabaseLocation,
  work: (settings: Pick<SettingStore, 'find' | 'set'>) => Promise<Result>,
): Promise<Result> {
  const file = sqliteFile(location);
  if (file === undefined) {
    const { openPostgresConnection } = await import('./postgres-connection.ts');
    const log = pino({ level: 'silent' });
    const { kysely, close, explain } = openPostgresConnection<Tables>({ url: location.url, log });
    try {
      return await work(createSettingStore({ kysely }));
    } catch (error) {
      throw explain(error);
    } finally {
      await close();
    }
  }
  using database = new DatabaseSync(existsSync(file) ? file : ':memory:', { timeout: 10_000 });
  database.exec('create table if not exists settings (key text primary key, value text not null)');
  return await work({
    async find(key) {
      const row = database.prepare('select value from settings where key = ?').get(key);
      return row === undefined ? undefined : String(row['value']);
    },
    async set(key, value) {
      database
        .prepare('insert or replace into settings (key, value) values (?, ?)')
        .run(key, value);
    },
  });
}
