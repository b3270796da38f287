import { constants, existsSync } from 'node:fs';
import { access, readdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { geteuid } from 'node:process';
import { signingKeyContext } from '../../../identity/oauth/keys/signing-key-store.ts';
import { readFailure } from '../../../platform/acme/acme-store.ts';
import type { Config } from '../../../platform/config/config.ts';
import { loadCookieSecrets } from '../../../platform/config/cookie-secret.ts';
import { createSealer } from '../../../platform/crypto/sealer.ts';
import { hubCommand } from '../../../platform/files/program-folder.ts';
import { isBackupName } from '../../../platform/store/database-backup.ts';
import { checkExpiringState } from '../../../platform/store/keyv.ts';
import {
  type LastBackup,
  oldBackupDays,
  readLastBackup,
} from '../../../platform/store/last-backup.ts';
import { type DatabaseProbe, probeDatabase } from '../../../platform/store/probe-database.ts';
import { type Finding, failed, ok, skipped, warning } from '../../../plugin/host/finding.ts';
import { findClosedPlace } from '../../../spawning/processes/closed-path.ts';
import { clockFinding } from './check-clock.ts';

const minFreeBytes = 512 * 2 ** 20;

/** Whether the database answers and fits this program, and whether its clock agrees with this machine's. */
export async function checkDatabase({ Hub, directory }: Config): Promise<readonly Finding[]> {
  const check = 'database';
  let probe: DatabaseProbe;
  try {
    probe = await probeDatabase(Hub.database_url, directory);
  } catch (error) {
    const fix =
      sqliteFileOf({ Hub, directory }) === undefined
        ? 'correct Hub.database_url, or start the database'
        : 'correct Hub.database_url, or let the account of the hub read and write the file';
    return [failed(check, messageOf(error), fix)];
  }
  const { engine, schemaVersion, newestSchemaVersion, answeredInMs, problem } = probe;
  const answered = `${engine} answered in ${answeredInMs.toFixed(0)} ms`;
  const { clockAheadMs } = probe;
  const clock = clockAheadMs === undefined ? [] : [clockFinding(clockAheadMs, 'the database')];
  const keys = await keyFindings({ Hub, directory }, probe);
  return [
    problemFinding(),
    ...clock,
    ...keys,
    ...importFindings(probe),
    ...acmeFindings(Hub, probe),
  ];

  function problemFinding(): Finding {
    if (problem !== undefined) return failed(check, `${engine}: ${problem}`, problem);
    if (schemaVersion === undefined)
      return ok(check, `${answered}; ${hubCommand('start')} creates the tables`);
    const ahead = newestSchemaVersion - schemaVersion;
    const versions =
      ahead === 0 ? '' : `, which ${hubCommand('start')} brings to ${newestSchemaVersion}`;
    return ok(check, `${answered}; its schema has version ${schemaVersion}${versions}`);
  }
}

/** How many tokens there are of a JupyterHub that nobody has used since they were taken over. */
function importFindings({ unusedImportedTokens: count }: DatabaseProbe): readonly Finding[] {
  if (count === 0) return [];
  return [ok('tokens of JupyterHub', `${count} of them were not used here yet`)];
}

/** Whether the cookie secrets open the keys that sign ID tokens; nothing where there are none. */
async function keyFindings(
  { Hub, directory }: Pick<Config, 'Hub' | 'directory'>,
  { signingKeys }: DatabaseProbe,
): Promise<readonly Finding[]> {
  const check = 'keys of ID tokens';
  const file = resolve(directory, Hub.cookie_secret_file);
  const isThere = Hub.cookie_secret !== undefined || existsSync(file);
  if (signingKeys.length === 0 || !isThere) return [];
  const secrets = await loadCookieSecrets({ configured: Hub.cookie_secret, file });
  const sealer = createSealer(secrets, 'signing-key');
  const lost = signingKeys.filter(
    ({ id, sealed }) => sealer.open(sealed, signingKeyContext(id)) === undefined,
  );
  if (lost.length === 0)
    return [ok(check, `${signingKeys.length} of them, which the cookie secret opens`)];
  const fix =
    'put the former cookie secret behind the new one in Hub.cookie_secret, or let the hub make new keys';
  return [warning(check, `${lost.length} were sealed with another cookie secret`, fix)];
}

/** Whether the last attempt to get a certificate failed, where the hub gets it itself. */
function acmeFindings({ acme }: Config['Hub'], probe: DatabaseProbe): readonly Finding[] {
  const check = 'certificate by ACME';
  if (acme === undefined) return [];
  const failure = readFailure(probe.acmeFailure);
  if (failure === undefined) return [ok(check, `from ${acme.directory}; no attempt has failed`)];
  const { count, at, nextAt, reason } = failure;
  const [last, next] = [at, nextAt].map((ms) => new Date(ms).toISOString());
  const attempts = count === 1 ? 'an attempt' : `${count} attempts`;
  const fix = `see what it says; the hub tries again at ${next}, and at once with other settings`;
  return [failed(check, `${attempts} failed, the last at ${last}: ${reason}`, fix)];
}

/** Whether the expiring state of `Hub.keyv_url` answers. */
export async function checkStore({ Hub, directory }: Config): Promise<Finding> {
  const check = 'expiring state';
  if (Hub.keyv_url === undefined) return ok(check, 'in the database');
  try {
    const startedAt = performance.now();
    await checkExpiringState(Hub.keyv_url, directory);
    return ok(check, `answered in ${(performance.now() - startedAt).toFixed(0)} ms`);
  } catch (error) {
    return failed(check, messageOf(error), 'correct Hub.keyv_url, or start the store');
  }
}

/** Whether the hub may write where it has to, and has room there. */
export async function checkFolders({ Hub, directory }: Config): Promise<readonly Finding[]> {
  const sqlite = sqliteFileOf({ Hub, directory });
  const folders = new Map([
    ['Hub.log_dir', resolve(directory, Hub.log_dir)],
    ...(sqlite === undefined ? [] : [['Hub.database_url', dirname(sqlite)] as const]),
    ['Hub.cookie_secret_file', dirname(resolve(directory, Hub.cookie_secret_file))],
  ]);
  return await Promise.all([...folders].map(([setting, folder]) => checkFolder(setting, folder)));
}

/** Whether backups are made: those of the hub, or of `hub backup` by whatever runs it; nothing where there was none. */
export async function checkBackups(config: Config): Promise<readonly Finding[]> {
  const { Hub, directory } = config;
  if (Hub.backup === undefined) return checkOtherBackups(config);
  const check = 'backups of Hub.backup';
  const folder = resolve(directory, Hub.backup.directory);
  const names = (await readdir(folder).catch(() => [])).filter(isBackupName).toSorted();
  const last = names.at(-1);
  const fix = `see the log of the hub, and try it: ${hubCommand(`backup ${folder}/trial`)}`;
  if (last === undefined) return [warning(check, `there is none in ${folder}`, fix)];
  const { mtimeMs, size } = await stat(join(folder, last));
  const hours = (Date.now() - mtimeMs) / 3_600_000;
  const said = `the last of ${names.length} is ${hours.toFixed(1)} hours old and has ${(size / 2 ** 20).toFixed(1)} MiB`;
  return hours > 2 * Hub.backup.interval_hours
    ? [failed(check, said, fix)]
    : [ok(check, `${said}: ${join(folder, last)}`)];
}

/** Such as those of a CronJob. */
async function checkOtherBackups({ Hub, directory }: Config): Promise<readonly Finding[]> {
  const check = 'backups of the database';
  // That the database does not answer is said by another check.
  const last = await readLastBackup({ url: Hub.database_url, directory }).catch(() => ({}));
  const { at, file, failedAt = 0, problem = '' }: LastBackup = last;
  const fix = `see the log of what makes them, and try it: ${hubCommand('backup trial')}`;
  if (failedAt > (at ?? 0)) return [failed(check, `the last one failed: ${problem}`, fix)];
  if (at === undefined) return [];
  const days = (Date.now() - at) / 86_400_000;
  const said = `the last one is ${days.toFixed(1)} days old: ${file}`;
  return [days > oldBackupDays ? warning(check, said, fix) : ok(check, said)];
}

/** Path of the database, of an SQLite in a file. */
function sqliteFileOf({ Hub, directory }: Pick<Config, 'Hub' | 'directory'>): string | undefined {
  const path = /^sqlite:(?!:memory:)(.+)$/.exec(Hub.database_url)?.[1];
  return path === undefined ? undefined : resolve(directory, path);
}

/** Whether the hub can use the file of its database, and no one else can; nothing where none is there yet. */
export async function checkDatabaseFile(config: Config): Promise<readonly Finding[]> {
  const check = 'file of Hub.database_url';
  const file = sqliteFileOf(config);
  if (file === undefined) return [];
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return [];
  try {
    await access(file, constants.R_OK | constants.W_OK);
  } catch {
    const detail = `${file}, of the user id ${found.uid}, may not be read and written by this account`;
    const fix = `run the hub, and this, as the account that owns it, or: chown ${geteuid?.()} ${file}*`;
    return [failed(check, detail, fix)];
  }
  const isOpen = (found.mode & 0o006) !== 0;
  if (!isOpen || (await findClosedPlace(file, 'others')) !== undefined) return [];
  const detail = `${file} can be read or written by every account of this machine`;
  return [warning(check, detail, `chmod o= ${file}*`)];
}

async function checkFolder(setting: string, folder: string): Promise<Finding> {
  const check = `folder of ${setting}`;
  const there = await nearestThere(folder);
  if (there === undefined) return skipped(check, `${folder} cannot be looked at`);
  try {
    await access(there, constants.W_OK | constants.X_OK);
  } catch {
    return failed(
      check,
      `${there} may not be written to`,
      `make it writable, or change ${setting}`,
    );
  }
  const { mode } = await stat(there);
  // Without the sticky bit they replace what is not theirs, too.
  if ((mode & 0o1002) === 0o002 && (await findClosedPlace(there, 'others')) === undefined) {
    const detail = `every account of this machine may replace what is in ${there}`;
    return warning(check, detail, `chmod o-w ${there}`);
  }
  const { bavail, bsize } = await statfs(there);
  const freeMiB = (bavail * bsize) / 2 ** 20;
  if (bavail * bsize < minFreeBytes) {
    return warning(
      check,
      `only ${freeMiB.toFixed(0)} MiB are free at ${there}`,
      `make room, or change ${setting}`,
    );
  }
  return ok(check, there === folder ? folder : `${folder}, which ${hubCommand('start')} makes`);
}

/** The folder, or what is there of the path to it. */
async function nearestThere(folder: string): Promise<string | undefined> {
  for (let path = folder; ; path = dirname(path)) {
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory() === true) return path;
    if (path === dirname(path)) return undefined;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
