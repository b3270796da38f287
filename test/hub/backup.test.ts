import { execFile, execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, open, readFile, stat, writeFile } from 'node:fs/promises';
import { constants, getPriority } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newestVersion } from '../../src/platform/store/migrate.ts';
import { createHubFolder, type HubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { hasPostgres, type PostgresCluster, startPostgres } from '../support/postgres.ts';
import { programFile } from '../support/program-file.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const manual = ['backup-and-upgrade', 'recover-from-disaster']
  .map((page) => readFileSync(join(projectDirectory, `docs/how-to/${page}.md`), 'utf8'))
  .join('');

/** The commands under a heading of the manuals, word by word. */
function commandsUnder(heading: string): string {
  const [, section = ''] = manual.split(`\n## ${heading}\n`);
  return /^```sh\n([\s\S]*?)^```$/m.exec(section)?.[1] ?? '';
}

interface Ran {
  readonly code: number;
  readonly output: string;
}

/** Runs commands in a folder, as somebody who has `hub` on the PATH. */
async function follow({ directory }: HubFolder, commands: string): Promise<Ran> {
  const programs = join(directory, 'bin');
  await mkdir(programs, { recursive: true });
  const script = `#!/bin/sh\nexec ${process.execPath} ${programFile('main')} "$@"\n`;
  await writeFile(join(programs, 'hub'), script, { mode: 0o755 });
  const env = { ...process.env, PATH: `${programs}:${process.env['PATH']}` };
  return new Promise((resolve) => {
    execFile('sh', ['-ec', commands], { cwd: directory, env }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
}

async function addUser({ apiUrl }: HubFolder, name: string): Promise<boolean> {
  const headers = { authorization: 'token admin-service-token' };
  const answer = await fetch(`${apiUrl}/users/${name}`, { method: 'POST', headers });
  return answer.status === 201;
}

async function hasUser({ apiUrl }: HubFolder, name: string): Promise<boolean> {
  const headers = { authorization: 'token admin-service-token' };
  return (await fetch(`${apiUrl}/users/${name}`, { headers })).status === 200;
}

const database = ({ directory }: HubFolder) => join(directory, 'hub.sqlite');
const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

function userNames(path: string): string[] {
  using open = new DatabaseSync(path, { readOnly: true });
  return open
    .prepare('select name from users')
    .all()
    .map(({ name }) => String(name));
}

/** Writes until it is told to stop; the names that were acknowledged. */
function keepWriting(folder: HubFolder) {
  const acknowledged: string[] = [];
  let isStopped = false;
  async function write(): Promise<void> {
    for (let count = 0; !isStopped; count += 1)
      if (await addUser(folder, `writer-${count}`)) acknowledged.push(`writer-${count}`);
  }
  const writing = write();
  return {
    acknowledged,
    async [Symbol.asyncDispose]() {
      isStopped = true;
      await writing;
    },
  };
}

describe('a backup', () => {
  test('lets everything else have the processor first', async () => {
    await using folder = await createHubFolder();
    await folder.command(['user', 'add', 'ada', '--admin'], 'four words in a row\n');
    // It waits for what the pipe will say.
    const pipe = join(folder.directory, 'pipe.json');
    execFileSync('mkfifo', [pipe]);
    const { directory: cwd } = folder;
    await using backup = spawnHubProcess(['backup', 'hub.sqlite.copy', '--config', pipe], { cwd });
    await using writer = await open(pipe, 'w');
    const niceness = getPriority(backup.pid);
    await writer.writeFile(await readFile(folder.configFile));
    await writer.close();
    expect(await backup.exited).toBe(0);
    expect(niceness).toBe(constants.priority.PRIORITY_BELOW_NORMAL);
  });

  test('is taken and restored by the manual, under writes and with nothing acknowledged lost', async () => {
    await using folder = await createHubFolder();
    const hub = await folder.start();
    let before: string[];
    {
      await using writing = keepWriting(folder);
      await until(() => writing.acknowledged.length > 20, 'users are written');
      before = [...writing.acknowledged];
      const backup = await follow(folder, commandsUnder('Take a backup'));
      expect(backup).toEqual({ code: 0, output: expect.stringContaining('hub_cookie_secret') });
    }

    const [name = ''] = readdirSync(join(folder.directory, 'backup'));
    const file = join(folder.directory, 'backup', name);
    expect(readdirSync(join(folder.directory, 'backup'))).toEqual([
      `hub-${new Date().toISOString().slice(0, 10)}.sqlite`,
    ]);
    expect(await modeOf(file)).toBe('600');
    expect(userNames(file)).toEqual(expect.arrayContaining(before));

    expect(await addUser(folder, 'after')).toBe(true);
    const restore = commandsUnder('Restore').replace('hub-2026-01-31.sqlite', name);
    expect(await follow(folder, restore)).toEqual({
      code: 1,
      output: `A hub (process ${hub.pid}) uses ${database(folder)}: stop it first.\n`,
    });
    await hub[Symbol.asyncDispose]();
    await chmod(database(folder), 0o640);
    const { code, output } = await follow(folder, restore);
    expect(code).toBe(0);
    const [kept = ''] = /\S+\.replaced-\S+(?=\.\n)/.exec(output) ?? [];
    expect(userNames(kept)).toContain('after');
    expect(await modeOf(database(folder))).toBe('640');

    await folder.start();
    expect(await hasUser(folder, before[0] ?? '')).toBe(true);
    expect(await hasUser(folder, before.at(-1) ?? '')).toBe(true);
    expect(await hasUser(folder, 'after')).toBe(false);
  });

  test('overwrites nothing', async () => {
    await using folder = await createHubFolder();
    await folder.command(['user', 'list']);
    await writeFile(join(folder.directory, 'precious'), 'precious');
    const { code, stderr } = await folder.command(['backup', 'precious']);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: /precious exists already/ });
    expect(await readFile(join(folder.directory, 'precious'), 'utf8')).toBe('precious');
    const lost = await folder.command(['backup', 'no/such/folder']);
    expect(lost.stderr).toContain('cannot be copied to');
    expect(readdirSync(folder.directory).filter((name) => name.endsWith('.part'))).toEqual([]);
  });

  test('that cannot be used replaces nothing', async () => {
    await using folder = await createHubFolder();
    await folder.command(['user', 'list']);
    const path = (name: string) => join(folder.directory, name);
    await folder.command(['backup', 'newer']);
    {
      using newer = new DatabaseSync(path('newer'));
      newer.exec('update hub_schema set version = 999');
      using other = new DatabaseSync(path('other'));
      other.exec('create table notes (text)');
    }
    await folder.command(['backup', 'torn']);
    const torn = await readFile(path('torn'));
    await writeFile(path('torn'), torn.fill(0x55, 4096 * 3, 4096 * 9));
    await writeFile(path('text'), 'no database at all '.repeat(100));
    const before = await readFile(database(folder));
    for (const [name, reason] of [
      ['newer', `has version 999, this hub knows ${newestVersion()}: start the newer hub`],
      ['other', 'is damaged or no database of a hub'],
      ['torn', 'is damaged or no database of a hub'],
      ['text', 'is damaged or no database of a hub'],
      ['absent', 'there is no file'],
    ] as const) {
      const { code, stderr } = await folder.command(['restore', name]);
      expect([name, code]).toEqual([name, 1]);
      expect(stderr).toContain(reason);
    }
    expect((await readFile(database(folder))).equals(before)).toBe(true);
    expect(readdirSync(folder.directory).filter((name) => /replaced|part/.test(name))).toEqual([]);
  });
});

describe('backups that the hub makes by itself', () => {
  const backup = { directory: 'safe', keep: 2, passphrase: 'correct horse' };

  test('are encrypted, so many, and restored by the passphrase alone', async () => {
    await using folder = await createHubFolder({ Hub: { backup } });
    const safe = join(folder.directory, 'safe');
    const [first, second] = ['hub-2026-01-01T00-00-00Z.sqlite', 'hub-2026-01-02T00-00-00Z.sqlite'];
    await mkdir(safe);
    const killed = [`${first}.plain`, `${first}.plain.0a1b.part`, `${first}.sealed.part`];
    for (const name of [first, second, 'notes.sqlite', ...killed])
      await writeFile(join(safe, name), 'old');
    const hub = await folder.start();
    const madeBy = () => readdirSync(safe).filter((name) => /^hub-(?!2026-01)/.test(name));
    await until(() => hub.stderr().includes('database backed up'), 'there is one');
    const [made = ''] = madeBy();
    expect(readdirSync(safe).toSorted()).toEqual([second, made, 'notes.sqlite'].toSorted());
    expect(await modeOf(join(safe, made))).toBe('600');
    expect((await readFile(join(safe, made))).includes('admin-service')).toBe(false);
    const metrics = await fetch(`${folder.url}hub/metrics`, {
      headers: { authorization: 'token admin-service-token' },
    });
    expect(await metrics.text()).toMatch(/hub_backup_last_success_timestamp_seconds 1\d{9}/);
    expect((await folder.command(['doctor'])).stdout).toContain('the last of 2 is 0.0 hours old');

    expect(await addUser(folder, 'after')).toBe(true);
    await hub[Symbol.asyncDispose]();
    const again = await folder.start();
    await until(() => again.stderr().includes('hub ready'), 'it runs');
    expect(madeBy()).toEqual([made]);
    await again[Symbol.asyncDispose]();

    const restore = ['restore', join('safe', made)];
    await folder.configure({ Hub: { backup: { ...backup, passphrase: 'wrong' } } });
    expect((await folder.command(restore)).stderr).toContain('the passphrase is not that of');
    await folder.configure({});
    expect((await folder.command(restore)).stderr).toContain('set Hub.backup.passphrase');
    expect(userNames(database(folder))).toContain('after');
    await folder.configure({ Hub: { backup } });
    const follows = (heading: string) =>
      follow(
        folder,
        commandsUnder(heading).replace('backup/hub-2026-01-31.sqlite', join('safe', made)),
      );
    const stolen = await follows('Keys, tokens or a backup were stolen');
    expect(stolen).toMatchObject({ code: 0, output: expect.stringContaining('were ended') });
    expect((await follows('The database is lost')).code).toBe(0);
    expect(userNames(database(folder))).not.toContain('after');
    expect(readdirSync(safe).filter((name) => name.endsWith('.plain'))).toEqual([]);
  });

  test('that fail are told, and the hub goes on', async () => {
    await using folder = await createHubFolder({ Hub: { backup } });
    await writeFile(join(folder.directory, 'safe'), 'no folder');
    const hub = await folder.start();
    await until(() => hub.stderr().includes('backup of the database failed'), 'it fails');
    expect(await addUser(folder, 'ada')).toBe(true);
    expect(await folder.command(['doctor'])).toMatchObject({
      stdout: expect.stringContaining('there is none in'),
    });
  });
});

test('backups by a command, such as of a CronJob, are known to doctor, metric and page', async () => {
  await using folder = await createHubFolder();
  await folder.start();
  const backup = (file: string) => folder.command(['backup', file]);
  const aboutBackups = async () =>
    (await folder.command(['doctor'])).stdout
      .split('\n')
      .filter((line) => /backup/.test(line))
      .join();
  expect(await aboutBackups()).toBe('');
  expect((await backup('one.sqlite')).code).toBe(0);
  expect(await aboutBackups()).toContain('the last one is 0.0 days old');
  // To name a file that is there is a slip of who types, and no failed backup.
  expect((await backup('one.sqlite')).code).toBe(1);
  expect(await aboutBackups()).toContain('the last one is 0.0 days old');
  expect((await backup('no-such-folder/two.sqlite')).code).toBe(1);
  expect(await aboutBackups()).toContain('the last one failed');
  expect((await backup('three.sqlite')).code).toBe(0);
  expect(await aboutBackups()).toContain('days old');
});

test('a database of a hub before the first release is refused, and what to do is said', async () => {
  await using folder = await createHubFolder();
  await folder.command(['user', 'list']);
  {
    using old = new DatabaseSync(database(folder));
    old.exec('update hub_schema set version = 26');
  }
  for (const command of [['start'], ['user', 'list'], ['doctor']]) {
    const { code, stdout, stderr } = await folder.run(command);
    expect([command, code]).toEqual([command, 1]);
    expect(stdout + stderr).toMatch(
      /before the first release.*name a new database in Hub\.database_url/s,
    );
  }
});

describe.skipIf(!hasPostgres())('a backup of PostgreSQL', () => {
  let cluster: PostgresCluster;
  beforeAll(async () => {
    cluster = await startPostgres();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  test('goes to SQLite, and does not reveal the password', async () => {
    const url = await cluster.createDatabase();
    await using folder = await createHubFolder({ Hub: { database_url: url } });
    expect(
      (await folder.command(['user', 'add', 'ada', '--admin'], 'four words in a row\n')).code,
    ).toBe(0);
    const backup = await folder.command(['backup', 'hub.jsonl.gz']);
    expect([backup.code, backup.stderr]).toEqual([0, '']);
    expect(await modeOf(join(folder.directory, 'hub.jsonl.gz'))).toBe('600');
    expect((await folder.command(['restore', 'hub.jsonl.gz'])).stderr).toContain(
      'make an empty one',
    );

    const wrong = new URL(url);
    wrong.password = 'wrong-password';
    await folder.configure({ Hub: { database_url: wrong.href } });
    const refused = await folder.command(['backup', 'other.jsonl.gz']);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('refuses the user or the password'),
    ]);
    expect(refused.stderr).not.toContain('wrong-password');
    expect(readdirSync(folder.directory)).not.toContain('other.jsonl.gz');

    await folder.configure({});
    expect((await folder.command(['restore', 'hub.jsonl.gz'])).code).toBe(0);
    expect((await folder.command(['user', 'list'])).stdout).toContain('ada');
  });
});
