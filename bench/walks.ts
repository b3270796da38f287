/**
 * How many files of `src/` are entered on four ways through the hub: in which a function is called between the request
 * and its answer each time, without those that are entered in an idle time as long. Writes bench/results/walks.md.
 * `node bench/walks.ts --files` names them.
 */

import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { createHubFolder, startHubProcess } from '../test/support/hub-process.ts';
import { submitLogin, until } from '../test/support/test-hub.ts';
import { trivialApp } from '../test/support/trivial-app.ts';
import { writeResultsTable } from './results-table.ts';

const limits = { visit: 32, patch: 65, page: 70, start: 140 };
/** As many as it takes for no timer to have its turn in each of them. */
const walksOfEach = 8;
const names = ['bob', ...Array.from({ length: walksOfEach - 1 }, (_, index) => `user-${index}`)];
/** Until what a walk leaves to be done later is done. */
const settleMs = 2_000;

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({ options: { files: { type: 'boolean', default: false } } });

await run();

async function run(): Promise<void> {
  await using folder = await createHubFolder({
    Hub: { log_level: 'warn' },
    Authenticator: { allow_all: true, admin_users: ['root'] },
    Spawner: { cmd: trivialApp() },
  });
  const calledFiles = join(folder.directory, 'called-files');
  await using hub = await startHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    program: join(root, 'src', 'main.ts'),
    env: {
      NODE_OPTIONS: `--import=${join(import.meta.dirname, 'walks', 'called-files.ts')}`,
      HUB_CALLED_FILES: calledFiles,
    },
  });

  async function takeCalledFiles(): Promise<Set<string>> {
    hub.signal('SIGUSR2');
    await until(() => existsSync(calledFiles), 'the called files are written');
    const lines = (await readFile(calledFiles, 'utf8')).split('\n').filter((line) => line !== '');
    await rm(calledFiles);
    return new Set(lines.map((path) => relative(root, path)));
  }

  /** What is entered on each of several walks, without what an idle time as long as the walk enters. */
  async function walk(ways: readonly (() => Promise<void>)[]): Promise<string[]> {
    const walks: Set<string>[] = [];
    for (const way of ways) {
      await takeCalledFiles();
      const begun = performance.now();
      await way();
      const lengthMs = performance.now() - begun;
      const entered = await takeCalledFiles();
      await pause(settleMs);
      await takeCalledFiles();
      await pause(lengthMs);
      walks.push(entered.difference(await takeCalledFiles()));
    }
    const [first = new Set<string>(), ...others] = walks;
    return [...first].filter((file) => others.every((other) => other.has(file))).sort();
  }

  const headers = {
    authorization: 'token admin-service-token',
    'content-type': 'application/json',
  };
  async function ask(path: string, method: string, body?: object): Promise<number> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${folder.apiUrl}${path}`, { method, headers, ...sent });
    await answer.arrayBuffer();
    return answer.status;
  }
  async function open(browser: FakeBrowser, path: string): Promise<void> {
    const { status } = await browser.request(`${folder.url}${path}`);
    expectStatus(status, 200, path);
  }
  async function startServer(name: string): Promise<void> {
    const path = `/users/${name}/server`;
    expectStatus(await ask(path, 'POST', {}), 201, path);
  }

  const [visitor, administrator] = [new FakeBrowser(), new FakeBrowser()];
  await submitLogin(visitor, folder.url, 'ada', 'test');
  await submitLogin(administrator, folder.url, 'root', 'test');
  for (const name of names) await ask(`/users/${name}`, 'POST');
  await startServer('ada');
  await visitor.open(`${folder.url}user/ada/`);

  const rows: string[][] = [];
  async function report(
    what: string,
    limit: number,
    ways: readonly (() => Promise<void>)[],
  ): Promise<void> {
    const entered = await walk(ways);
    if (values.files) process.stdout.write(`${what}\n  ${entered.join('\n  ')}\n`);
    const isGood = entered.length <= limit;
    rows.push([what, `${entered.length} files`, `≤ ${limit}`, isGood ? 'yes' : 'NO']);
    if (!isGood) process.exitCode = 1;
  }
  /** Once before: what is read once for all is no part of it. */
  async function reportRepeated(what: string, limit: number, way: () => Promise<void>) {
    await way();
    await report(
      what,
      limit,
      Array.from({ length: walksOfEach }, () => way),
    );
  }
  await reportRepeated('a visitor who was there opens a server', limits.visit, () =>
    open(visitor, 'user/ada/'),
  );
  let isAdmin = false;
  await reportRepeated('PATCH /hub/api/users/bob', limits.patch, async () => {
    isAdmin = !isAdmin;
    expectStatus(await ask('/users/bob', 'PATCH', { admin: isAdmin }), 200, 'PATCH');
  });
  await reportRepeated('GET /hub/admin', limits.page, () => open(administrator, 'hub/admin'));
  const started = names.map((name) => () => startServer(name));
  await report('a local server starts', limits.start, started);
  await writeResultsTable({
    name: 'walks',
    heading: 'Files that a request enters',
    setting: 'Files of `src/` in which a function is called; those that timers enter do not count.',
    rows,
  });
}

function expectStatus(status: number, expected: number, what: string): void {
  if (status !== expected) throw new Error(`${what} was answered with ${status}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
