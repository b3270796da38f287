import type { SettingStore } from './setting-store.ts';

const key = 'backup:last';

/** What became of the backups that the hub makes, in milliseconds since 1970. */
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
