import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createUserStore } from '../../src/identity/users/user-store.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { useCommandLine } from '../support/command-line.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { programFile } from '../support/program-file.ts';
import { pathOf, requires } from '../support/requires.ts';

let folder: HubFolder;
let bin: string;
/** A name that shells would run, if they evaluated it. */
const hostileName = 'bob$(>pwned)';

beforeAll(async () => {
  folder = await createHubFolder({ Hub: { services: [{ name: 'ticker', command: ['true'] }] } });
  for (const name of ['ada@example.org', hostileName]) {
    expect((await folder.command(['user', 'add', name, '--no-password'])).stderr).toBe('');
  }
  bin = join(folder.directory, 'bin');
  await mkdir(bin);
  const main = programFile('main');
  await writeFile(join(bin, 'hub'), `#!/bin/sh\nexec ${process.execPath} ${main} "$@"\n`);
  await chmod(join(bin, 'hub'), 0o755);
});
afterAll(() => folder[Symbol.asyncDispose]());

/** What a program prints that is run in the folder of the hub. */
async function run(words: readonly string[], input = ''): Promise<string> {
  const [command = '', ...args] = words;
  const { directory } = folder;
  const PATH = `${bin}:${process.env['PATH']}`;
  const child = spawn(command, args, {
    cwd: directory,
    env: { ...process.env, PATH, HOME: directory, ZDOTDIR: directory, TERM: 'dumb' },
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 100_000,
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  return await text(child.stdout);
}

/** What lines become that are typed at a terminal, with the key for completion at the end of each. */
async function complete(shell: string, setUp: string, lines: readonly string[]) {
  // What is asked at a press of the key is the program, not this function.
  const show = `hub() { printf 'TYPED<%s>\\n' "$*"; }`;
  const typed = [setUp, show, ...lines.map((line) => `${line}\t`), 'exit', ''].join('\n');
  const shown = await run([pathOf('script'), '-qec', shell, '/dev/null'], typed);
  return [...shown.matchAll(/^TYPED<(.*?) ?>\r$/gm)].map(([, words]) => words);
}

const typedLines = [
  'hub statu',
  'hub user passwd ada',
  'hub user passwd bob',
  'hub start -c hub.con',
  'hub start --config=hub.con',
];
const completed = [
  'status',
  'user passwd ada@example.org',
  `user passwd ${hostileName}`,
  'start -c hub.config.json',
  'start --config=hub.config.json',
];
const hasRun = () => existsSync(join(folder.directory, 'pwned'));

describe('at the press of a key', () => {
  test.skipIf(!requires('script', 'bash'))('bash completes', async () => {
    const setUp = 'source <(hub completion bash)';
    expect(await complete('bash --norc -i', setUp, typedLines)).toEqual(completed);
    expect(hasRun()).toBe(false);
  });

  test.skipIf(!requires('script', 'zsh'))('zsh completes', async () => {
    const setUp = 'bindkey -e; autoload -Uz compinit; compinit -u -D; source <(hub completion zsh)';
    expect(await complete('zsh -f -i', setUp, typedLines)).toEqual(completed);
    expect(hasRun()).toBe(false);
  });

  test.skipIf(!requires('fish'))('fish completes', async () => {
    const asked = typedLines.map((line) => `complete -C '${line}'`);
    const script = ['hub completion fish | source', ...asked].join('; ');
    const lines = (await run([pathOf('fish'), '--no-config', '-c', script])).trim().split('\n');
    expect(lines.map((line) => line.split('\t')[0])).toEqual(
      completed.map((line) => line.split(' ').at(-1)),
    );
    expect(hasRun()).toBe(false);
  });
});

describe('what can come next', () => {
  const { hub } = useCommandLine();
  const valuesFor = async (line: string) => {
    const { stdout, stderr, exitCode } = await hub(`complete -- ${line}`);
    expect([stderr, exitCode]).toEqual(['', 0]);
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((each) => each.split('\t')[0]);
  };

  test('are commands, options, choices and files, without a hub or its database', async () => {
    expect(await valuesFor('st')).toEqual(['start', 'stop', 'status']);
    expect(await valuesFor('user ""')).toEqual([
      'add',
      'passwd',
      'account',
      'volume',
      'import',
      'invite',
      'group',
      'list',
      'suspend',
      'unsuspend',
      'delete',
      'help',
    ]);
    expect(await valuesFor('logs ticker --l')).toEqual(['--lines']);
    expect(await valuesFor('logs ticker --si')).toEqual(['--since']);
    expect(await valuesFor('logs --since ""')).toEqual([]);
    expect(await valuesFor('completion ""')).toEqual(['bash', 'zsh', 'fish']);
    expect(await valuesFor('backup ""')).toEqual([':files']);
    expect(await valuesFor('logs -n ""')).toEqual([]);
    expect(await valuesFor('logs --config=hub')).toEqual([':files']);
    expect(await valuesFor('logs --lines=')).toEqual([]);
    expect(await valuesFor('logs --follow=')).toEqual([]);
    expect(await valuesFor('user add ""')).toEqual([]);
    expect(await valuesFor('user delete ""')).toEqual([]);
    expect(await valuesFor('nonsense ""')).toEqual([]);
  });

  test('are names of services and users, of the configuration that is given', async () => {
    for (const given of ['--config ', '--config=', '-c']) {
      expect(await valuesFor(`logs -f ${given}${folder.configFile} ""`)).toEqual(['ticker']);
    }
    const service = await valuesFor(`service restart --config ${folder.configFile} ""`);
    expect(service).toEqual(['ticker']);
    await folder.command(['group', 'create', 'makers']);
    const group = await valuesFor(`group add --config ${folder.configFile} ma`);
    expect(group).toEqual(['makers']);
    const users = await valuesFor(`server stop --config ${folder.configFile} ad`);
    expect(users).toEqual(['ada@example.org']);
    const second = await valuesFor(`group add --config ${folder.configFile} makers eve ada`);
    expect(second).toEqual(['ada@example.org']);
  });

  test('are users by the beginning of their names, however many there are', async () => {
    {
      const log = pino({ level: 'silent' });
      const { directory } = folder;
      await using database = await openDatabase('sqlite:hub.sqlite', { directory, log });
      const names = Array.from({ length: 250 }, (_, index) => `member-${index}`);
      await createUserStore(database).createMissing([...names, 'zoe', 'zoë.m']);
    }
    const args = ['complete', '--', 'user', 'delete', '--config', folder.configFile, 'zo'];
    expect((await folder.command(args)).stdout).toBe('zoe\tuser\nzoë.m\tuser\n');
  });
});
