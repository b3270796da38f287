/**
 * From an empty folder and an empty cache of npm to the first login, by the commands of the package's README; the size of
 * what is installed; and how soon the package answers. Writes bench/results/install.md.
 * `npm run bench -- install --starts=15`
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { singleuserFile } from '../scripts/program.ts';
import { sizeOf } from '../scripts/release-checks.ts';
import { documentedBlock } from '../test/support/documented-blocks.ts';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { freePort } from '../test/support/free-port.ts';
import { spawnHubProcess } from '../test/support/hub-process.ts';
import { testPassword } from '../test/support/password-hub.ts';
import { submitForm } from '../test/support/test-hub.ts';
import { root } from './api/hub.ts';
import { meteredProcess } from './gateway/pinned-process.ts';
import { median } from './gateway/rounds.ts';
import { writeResultsTable } from './results-table.ts';

const { values } = parseArgs({ options: { starts: { type: 'string', default: '15' } } });
const starts = Number(values.starts);
const limits = { commands: 4, seconds: 90, hubMB: 110, clientMB: 1, guardMB: 1.5, answer: 0.8 };
const patienceMs = 180_000;

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
execFileSync(process.execPath, [join(root, 'scripts', 'build.ts')], { stdio: 'ignore' });
const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));
const environment = environmentOfShell();
const [hubTarball, clientTarball] = ['dist', 'dist-client'].map(pack) as [string, string];
const folder = await emptyFolder('hub');
const port = await freePort();
const url = `http://127.0.0.1:${port}/`;

const commands = documentedBlock('deploy/npm/hub.md', 'sh')
  .split('\n')
  .map((line) => line.replace(/#.*/, '').trim())
  .filter((line) => line !== '');
const laps: string[] = [];
let installSeconds = 0;
for (const command of commands) {
  const since = performance.now();
  if (/^npx hub start$/.test(command)) await logInFirst();
  else if (/^npx hub init$/.test(command)) await initialize(command);
  else run(command.replace('@hub-gateway/hub', hubTarball), folder);
  const seconds = (performance.now() - since) / 1_000;
  laps.push(`\`${command}\` ${seconds.toFixed(1)} s`);
  installSeconds += seconds;
}

const answers: { readonly seconds: number; readonly cpuSeconds: number }[] = [];
for (let index = 0; index < starts; index += 1) answers.push(await startToAnswer());
const answerSeconds = median(answers.map(({ seconds }) => seconds));
const answerCpu = median(answers.map(({ cpuSeconds }) => cpuSeconds));

const clientFolder = await emptyFolder('client');
run(`npm install ${clientTarball}`, clientFolder);
const megabytes = (bytes: number) => bytes / 1e6;
const hubMB = megabytes(sizeOf(join(folder, 'node_modules')));
const clientMB = megabytes(sizeOf(join(clientFolder, 'node_modules')));
const guardMB = megabytes((await stat(join(root, 'dist', singleuserFile))).size);

const rows = [
  row('commands to the first login', commands.length, limits.commands),
  row('empty folder to first login by the set-up link', installSeconds, limits.seconds, 's', 1),
  row('installed hub with all that it needs', hubMB, limits.hubMB, 'MB', 1),
  row('installed client library', clientMB, limits.clientMB, 'MB', 2),
  row('`hub-singleuser` as one file', guardMB, limits.guardMB, 'MB', 2),
  row('start to first answer', answerSeconds, limits.answer, 's', 2),
  [
    'the fastest of them',
    `${Math.min(...answers.map(({ seconds }) => seconds)).toFixed(2)} s`,
    '',
    '',
  ],
  ['processor time of a start', `${answerCpu.toFixed(2)} s`, '', ''],
];
await writeResultsTable({
  name: 'install',
  heading: 'From an empty folder to the first login',
  setting:
    `The package as \`npm run build\` and \`npm pack\` make it; the cache of npm is empty, and the registry as far away as it is. ${laps.join(', ')}. ` +
    `Start to first answer is the median of ${starts} starts of the installed package, while other programs used the machine.`,
  rows,
});
if (rows.some((each) => each.at(-1) === 'NO')) process.exitCode = 1;

function row(what: string, value: number, limit: number, unit = '', digits = 0): string[] {
  const isGood = value <= limit;
  return [
    what,
    `${value.toFixed(digits)} ${unit}`.trim(),
    `≤ ${limit} ${unit}`.trim(),
    isGood ? 'yes' : 'NO',
  ];
}

async function emptyFolder(name: string): Promise<string> {
  const made = join(directory, name);
  await mkdir(made);
  return made;
}

/** As of somebody who is in no project: what `npm run` says of this one is left out. */
function environmentOfShell(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^npm_(?!config_)|^npm_config_local_prefix$/.test(name),
  );
  return {
    ...Object.fromEntries(own),
    PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
    npm_config_cache: join(directory, 'cache'),
  };
}

function run(command: string, cwd: string): string {
  const stdio = ['ignore', 'pipe', 'pipe'] as const;
  return execFileSync('sh', ['-c', command], {
    cwd,
    env: environment,
    encoding: 'utf8',
    stdio: [...stdio],
  });
}

function pack(built: string): string {
  const packed = run(`npm pack ${join(root, built)} --pack-destination . --json`, directory);
  return join(directory, (JSON.parse(packed) as [{ filename: string }])[0].filename);
}

/** Answers its questions by flags. Its second port is not asked for; another program may have it here. */
async function initialize(command: string): Promise<void> {
  run(`${command} --yes --url ${url} --server none`, folder);
  const file = join(folder, 'hub.config.json');
  const config = await readFile(file, 'utf8');
  await writeFile(file, config.replace('127.0.0.1:8080', `127.0.0.1:${await freePort()}`));
}

/** Starts the hub as the README does, and becomes its administrator by the link that it prints. */
async function logInFirst(): Promise<void> {
  const hub = spawn('npx', ['hub', 'start'], {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const exited = once(hub, 'exit');
  let printed = '';
  hub.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
  });
  try {
    const link = await waitFor(
      () => /http\S+\/hub\/set-up\?secret=\S+/.exec(printed)?.[0],
      'set-up link',
    );
    const browser = new FakeBrowser();
    const typed = { name: 'ada', new_password: testPassword, repeat_password: testPassword };
    await submitForm(browser, await browser.request(link), typed);
    const home = await browser.request(`${url}hub/home`);
    if (home.status !== 200) throw new Error(`home was answered with ${home.status}`);
  } finally {
    // With what npm has put around it.
    if (hub.pid !== undefined) process.kill(-hub.pid, 'SIGTERM');
    await exited;
  }
}

async function startToAnswer() {
  const program = join(folder, 'node_modules', '.bin', 'hub');
  const since = performance.now();
  const hub = spawnHubProcess(['start'], { cwd: folder, program });
  try {
    await waitFor(
      async () =>
        (await fetch(`${url}hub/health`).catch(() => undefined))?.ok === true || undefined,
      'answer',
    );
    const seconds = (performance.now() - since) / 1_000;
    return { seconds, cpuSeconds: meteredProcess(hub.pid).cpuSeconds() };
  } finally {
    hub.signal('SIGTERM');
    await hub.exited;
  }
}

async function waitFor<Value>(
  find: () => Value | undefined | Promise<Value | undefined>,
  what: string,
): Promise<Value> {
  for (const since = performance.now(); performance.now() - since < patienceMs; await pause(5)) {
    const found = await find();
    if (found !== undefined) return found;
  }
  throw new Error(`there was no ${what}`);
}
