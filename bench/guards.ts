/**
 * What the login before a local server costs: guarded by the gateway, and by `hub-singleuser` beside it. How long a start
 * takes beyond that of the app, what the hub computes for one of a thousand, what memory goes beside the app, and
 * how many requests pass. Writes bench/results/guards.md.
 * `node bench/guards.ts --starts=1000`, of the package as it is published with `HUB_TEST_PROGRAM=$PWD/dist` after
 * `npm run build`.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createLimiter } from '../src/platform/concurrency/limiter.ts';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { freePort } from '../test/support/free-port.ts';
import { createHubFolder, type HubProcess } from '../test/support/hub-process.ts';
import { submitLogin } from '../test/support/test-hub.ts';
import { bothCores } from './gateway/pinned-process.ts';
import { wrk } from './gateway/wrk.ts';
import { writeResultsTable } from './results-table.ts';

const adminToken = 'admin-service-token';
const app = ['perl', join(import.meta.dirname, '..', 'fixtures', 'apps', 'trivial.pl')];
/** Keeps connections, so that not they are measured. */
const lasting = [
  process.execPath,
  '-e',
  "require('node:http').createServer((_request, response) => response.end('ok')).listen(process.argv[1])",
  '{socket}',
];
const atOnce = 40;
const single = 30;
/** Of the kernel, in a second. */
const ticks = 100;

interface Costs {
  readonly startMs: number;
  readonly cpuMs: number;
  readonly besideKib: number;
  readonly requestsPerSecond: number;
}

const { values } = parseArgs({ options: { starts: { type: 'string', default: '1000' } } });
await run(Number(values.starts));

async function run(starts: number): Promise<void> {
  const ownMs = await startOfApp();
  const gateway = await measure('gateway', [], starts);
  const beside = await measure('server', ['hub-singleuser', '--'], Math.min(starts, 40));
  const row = (what: string, value: string, limit = '', isGood = true) => [
    what,
    value,
    limit,
    limit === '' ? '' : isGood ? 'yes' : 'NO',
  ];
  const more = (costs: Costs) => costs.startMs - ownMs;
  const faster = gateway.requestsPerSecond / beside.requestsPerSecond;
  await writeResultsTable({
    name: 'guards',
    heading: 'The login before a local server',
    setting:
      'The app is `fixtures/apps/trivial.pl`, a web server of twenty lines of Perl, on a Unix socket. Hub, servers and the measuring program share the cores. ' +
      (process.env['HUB_TEST_PROGRAM'] === undefined ? 'The program runs from its sources.' : 'The program is that of `npm run build`.'),
    rows: [
      row('start of the app alone, p50', `${ownMs.toFixed(0)} ms`),
      row('POST to ready beyond it, by the gateway, p50', `${more(gateway).toFixed(0)} ms`, '≤ 40 ms', more(gateway) <= 40),
      row('the same by hub-singleuser', `${more(beside).toFixed(0)} ms`, '≤ 300 ms', more(beside) <= 300),
      row(
        `processor time of the hub for one of ${starts} starts, ${atOnce} at once`,
        `${gateway.cpuMs.toFixed(1)} ms`,
        '≤ 20 ms',
        gateway.cpuMs <= 20,
      ),
      row('the same by hub-singleuser', `${beside.cpuMs.toFixed(1)} ms`),
      row('memory beside the app, by the gateway: in the hub', `${gateway.besideKib.toFixed(0)} KiB`, '≤ 1024 KiB', gateway.besideKib <= 1024),
      row('the same by hub-singleuser: its process and in the hub', `${beside.besideKib.toFixed(0)} KiB`),
      row('requests of a logged-in browser, by the gateway', `${gateway.requestsPerSecond.toFixed(0)}/s`),
      row('the same by hub-singleuser', `${beside.requestsPerSecond.toFixed(0)}/s`),
      row('the first against the second', `${faster.toFixed(1)}×`, '≥ 2.5×', faster >= 2.5),
    ],
  });
}

/** Milliseconds from the start of the app by hand until it answers. */
async function startOfApp(): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < single; round += 1) {
    const url = `http://127.0.0.1:${await freePort()}`;
    const [program = '', ...args] = app;
    const since = performance.now();
    const child: ChildProcess = spawn(program, args, { env: { ...process.env, HUB_SERVICE_URL: url } });
    while (!(await fetch(url).then((answer) => answer.ok, () => false))) await setTimeout(1);
    times.push(performance.now() - since);
    child.kill();
  }
  return median(times);
}

async function measure(
  access: 'gateway' | 'server',
  guard: readonly string[],
  starts: number,
): Promise<Costs> {
  await using folder = await createHubFolder({
    Hub: { concurrent_spawn_limit: 0, log_level: 'warn', cleanup_servers: true },
    Spawner: {
      start_timeout: 300,
      http_timeout: 300,
      access,
      profiles: [
        { name: 'brief', cmd: [...guard, ...app, '{socket}'] },
        { name: 'lasting', cmd: [...guard, ...lasting] },
      ],
    },
  });
  const hub = await folder.start();
  const api = async (path: string, method: string, body?: object) => {
    const answer = await fetch(folder.apiUrl + path, {
      method,
      headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.text() };
  };
  const start = async (name: string, options?: object) => {
    const { status, body } = await api(`/users/${name}/server`, 'POST', options);
    if (status === 202) await api(`/users/${name}/server/progress`, 'GET');
    else if (status !== 201) throw new Error(`${name}: ${status} ${body}`);
  };

  const browser = new FakeBrowser();
  await submitLogin(browser, folder.url, 'reader', 'test');
  await start('reader', { profile: 'lasting' });
  const page = `${folder.url}user/reader/`;
  await browser.open(page);
  const { requestsPerSecond } = await wrk({
    url: page,
    seconds: 10,
    connections: 32,
    headers: { cookie: browser.cookieHeader(page) },
    core: bothCores,
  });

  const times: number[] = [];
  await api('/users', 'POST', { usernames: Array.from({ length: single }, (_, at) => `one-${at}`) });
  for (let at = 0; at < single; at += 1) {
    const since = performance.now();
    await start(`one-${at}`);
    times.push(performance.now() - since);
  }

  const names = Array.from({ length: starts }, (_, at) => `user-${at}`);
  for (let at = 0; at < starts; at += 200) {
    await api('/users', 'POST', { usernames: names.slice(at, at + 200) });
  }
  const before = { cpuMs: await cpuMsOf(hub), kib: await residentKib(hub.pid) };
  const inTurn = createLimiter(atOnce);
  await Promise.all(names.map((name) => inTurn(() => start(name))));
  const cpuMs = ((await cpuMsOf(hub)) - before.cpuMs) / starts;
  const inHubKib = ((await residentKib(hub.pid)) - before.kib) / starts;
  return {
    startMs: median(times),
    cpuMs,
    besideKib: inHubKib + (await guardKib()),
    requestsPerSecond,
  };
}

function median(figures: readonly number[]): number {
  return figures.toSorted((one, other) => one - other)[Math.floor(figures.length / 2)] ?? Number.NaN;
}

/** User and system time of the hub and of the children that it has waited for (proc(5)). */
async function cpuMsOf({ pid }: HubProcess): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return ((Number(fields[11]) + Number(fields[12])) / ticks) * 1000;
}

async function residentKib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]);
}

/** What the guards of all servers take, on average; 0 where there is none. */
async function guardKib(): Promise<number> {
  const sizes: number[] = [];
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('singleuser-main') && command.includes('trivial.pl'))
      sizes.push(await residentKib(Number(pid)));
  }
  return sizes.length === 0 ? 0 : sizes.reduce((sum, each) => sum + each, 0) / sizes.length;
}
