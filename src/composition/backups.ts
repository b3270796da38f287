import { execFile } from 'node:child_process';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { createPeriodic, type Periodic } from '../platform/concurrency/periodic.ts';
import type { Config } from '../platform/config/config.ts';
import { backupName, isBackupName, isUnfinishedBackup } from '../platform/store/database-backup.ts';
import { findLastBackup, type LastBackup, saveLastBackup } from '../platform/store/last-backup.ts';
import type { Foundation } from './foundation.ts';
import type { Stores } from './stores.ts';

const lookMs = 60_000;
const retryMs = 10 * 60_000;
const hourMs = 3_600_000;

/** Makes the backups of `Hub.backup`, one process for all on the database, by a program that shares no core with the hub. */
export function startBackups(
  hub: Pick<Stores, 'settings'> &
    Pick<Foundation, 'database' | 'environment' | 'log' | 'stopping'> & {
      readonly config: Pick<Config, 'Hub' | 'directory' | 'file'>;
      readonly program?: readonly string[];
    },
): Periodic | undefined {
  const { config, database, settings, log } = hub;
  const { backup, database_url } = config.Hub;
  const [command, ...words] = hub.program ?? [];
  if (backup === undefined || config.file === undefined || command === undefined) return undefined;
  const { interval_hours, keep } = backup;
  const folder = resolve(config.directory, backup.directory);
  const given = ['--config', config.file];

  const isDue = ({ at = 0, failedAt = 0 }: LastBackup) =>
    database.now() >= Math.max(at + interval_hours * hourMs, failedAt + retryMs);

  async function back(): Promise<void> {
    const last = await findLastBackup(settings);
    if (!isDue(last)) return;
    const file = join(folder, backupName(database_url, new Date(database.now())));
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await remove((await readdir(folder)).filter(isUnfinishedBackup));
      await promisify(execFile)(command ?? '', [...words, 'backup', file, ...given], {
        cwd: config.directory,
        env: hub.environment,
        signal: hub.stopping,
      });
      // The command has noted it.
      log.info({ file }, 'database backed up');
      await remove((await readdir(folder)).filter(isBackupName).toSorted().slice(0, -keep));
    } catch (error) {
      if (hub.stopping.aborted) return;
      const { stderr, message } = error as Error & { readonly stderr?: string };
      const problem = stderr?.trim() || message;
      await saveLastBackup(settings, { ...last, failedAt: database.now(), problem });
      log.error({ file, problem }, 'backup of the database failed');
    }
  }

  async function remove(names: readonly string[]): Promise<void> {
    for (const name of names) await rm(join(folder, name));
  }

  const periodic = createPeriodic({
    intervalMs: lookMs,
    async work() {
      if (isDue(await findLastBackup(settings))) await database.whileAlone('backup', back);
    },
    onError: (error) => log.warn({ err: error }, 'could not see to backups'),
  });
  void periodic.run();
  return periodic;
}
