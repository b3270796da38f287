/**
 * What the page "Capacity" calculates, measured at three sizes: people who all log in by a password, half of whom start
 * a server, keep WebSockets open and send requests. Writes bench/results/capacity.md.
 * `npm run bench -- capacity --people=50,500,5000 --seconds=30`
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { busy } from '../scripts/reference/capacity-page.ts';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import type { HubFolder, HubProcess } from '../test/support/hub-process.ts';
import { setup as buildProgram } from '../test/support/program.ts';
import { requires } from '../test/support/requires.ts';
import { submitLogin, until } from '../test/support/test-hub.ts';
import type { Outcome, Plan } from './capacity/people.ts';
import { exactCpuSeconds, meteredProcess } from './gateway/pinned-process.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile } from './servers/health-probe.ts';
import { createAccounts, password } from './storm/accounts.ts';

const { values } = parseArgs({
  options: {
    people: { type: 'string', default: '50,500,5000' },
    seconds: { type: 'string', default: '30' },
  },
});
const fullSizes = '50,500,5000';
const seconds = Number(values.seconds);
const arrivingAtOnce = 20;
/** For what logins and starts have left to be done, and the collection of what they have left. */
const settlingMs = 20_000;
const adminToken = 'admin-service-token';

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (!requires('nginx')) throw new Error('nginx is missing');
// As it is published: from its sources it takes more memory.
await buildProgram();
const { createHubFolder } = await import('../test/support/hub-process.ts');
await using disposables = new AsyncDisposableStack();
const site = await mkdtemp(join(tmpdir(), 'hub-bench-'));
disposables.defer(() => rm(site, { recursive: true, force: true }));
// A configuration of its own for each server; one that keeps connections, as Jupyter does.
const serve = join(site, 'serve');
await writeFile(
  serve,
  `cat >nginx.conf <<END
daemon off; master_process off; pid $PWD/nginx.pid; error_log stderr crit;
events { worker_connections 64; }
http {
  access_log off; keepalive_timeout 300s; keepalive_requests 1000000;
  client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy; fastcgi_temp_path $PWD/fastcgi;
  uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
  server { listen $1; client_header_buffer_size 8k; location / { return 200 ${'x'.repeat(1024)}; } }
}
END
exec nginx -p "$PWD" -e stderr -c "$PWD/nginx.conf"
`,
);
const app = startProcess('app');
const [socketPort] = await once(app, 'message');

const sizes = values.people.split(',').map(Number);
// Of the hub: both ends of what it forwards, and some for all else.
const neededFiles = Math.max(...sizes) * busy.shareOpen * (busy.sockets + 1) * 2 + 2_000;
const openFiles = Number(
  /^Max open files\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8'))?.[1],
);
if (openFiles < neededFiles)
  throw new Error(`needs ${neededFiles} open files: ulimit -n ${neededFiles}`);

const rows: string[][] = [];
for (const people of sizes) await measure(people);
await writeResultsTable({
  name: 'capacity',
  heading: 'Capacity at three sizes',
  setting:
    `All log in by a password, ${arrivingAtOnce} at a time; ${busy.shareOpen * 100} % of them then start a server (nginx behind the gateway), open ` +
    `${busy.sockets} WebSockets to a service that asks who they are, and send ${busy.requestsPerSecond} request a second for 1 KiB to their server, each on a connection of its own, ` +
    `for ${seconds} seconds. Processor time and memory are the hub’s alone, which is the built program and shares the cores with servers, service and people, who fill what is left of them at 5,000: requests wait then.`,
  rows,
  isPartial: values.people !== fullSizes,
});

function startProcess(name: string) {
  const child = fork(join(import.meta.dirname, 'capacity', `${name}.ts`));
  disposables.defer(() => void child.kill('SIGKILL'));
  child.once('exit', (code) => {
    if (code !== null) throw new Error(`${name}.ts ended`);
  });
  return child;
}

async function measure(count: number): Promise<void> {
  await using folder = await createHubFolder({
    Hub: {
      authenticator_class: 'password',
      concurrent_spawn_limit: 0,
      cleanup_servers: true,
      load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      services: [
        {
          name: 'app',
          url: `http://127.0.0.1:${socketPort}`,
          access: 'gateway',
          oauth_no_confirm: true,
        },
      ],
    },
    Spawner: {
      cmd: ['sh', serve, '{ip}:{port}'],
      access: 'gateway',
      start_timeout: 300,
      http_timeout: 300,
    },
  });
  const names = Array.from({ length: count }, (_, index) => `person-${index}`);
  await createAccounts(folder.directory, names);
  const hub = await folder.start();
  await pause(settlingMs);
  const emptyMiB = await leastMemoryMiB(hub);

  const browsers = names.map(() => new FakeBrowser());
  // Threads that compare passwords end in it, and with them what is known exactly.
  const { cpuSeconds } = meteredProcess(hub.pid);
  const login = await cpuOf(cpuSeconds, () =>
    eachOf(names, async (name, index) => {
      const browser = browsers[index] as FakeBrowser;
      const { status } = await submitLogin(browser, folder.url, name, password);
      if (status !== 302) throw new Error(`the login of ${name} was answered with ${status}`);
    }),
  );
  const open = names.slice(0, count * busy.shareOpen);
  const start = await cpuOf(cpuSeconds, () => eachOf(open, (name) => startServer(folder, name)));
  const socketPage = `${folder.url}services/app/`;
  const plan: Plan = {
    sockets: busy.sockets,
    requestsPerSecond: busy.requestsPerSecond,
    seconds,
    people: await eachOf(open, async (name, index) => {
      const browser = browsers[index] as FakeBrowser;
      const page = `${folder.url}user/${name}/`;
      const answer = await browser.open(page);
      if (answer.status !== 200)
        throw new Error(`the server of ${name} was answered with ${answer.status}`);
      // No page, but the cookies of one.
      await browser.open(socketPage);
      return {
        address: `127.1.${index >> 8}.${index & 255}`,
        page,
        pageCookies: browser.cookieHeader(page),
        socket: socketPage.replace('http', 'ws'),
        socketCookies: browser.cookieHeader(socketPage),
      };
    }),
  };
  const users = startProcess('people');
  users.send(plan);
  await once(users, 'message');
  await pause(settlingMs);
  const openMiB = await leastMemoryMiB(hub);
  let outcome: Outcome = { latenciesMs: [], failedRequests: 0, closedSockets: 0 };
  const exactly = () => exactCpuSeconds(hub);
  const idleSeconds = await cpuOf(exactly, () => pause(seconds * 1_000));
  const busySeconds = await cpuOf(exactly, async () => {
    users.send('ask');
    [outcome] = (await once(users, 'message')) as [Outcome];
  });
  users.kill();
  hub.signal('SIGTERM');
  await hub.exited;

  const row = (what: string, value: string, limit = '', isGood = true) => {
    rows.push([
      `${what}, ${count.toLocaleString('en')} people`,
      value,
      limit,
      limit === '' ? '' : isGood ? 'yes' : 'NO',
    ]);
    process.stderr.write(`${what}, ${count} people: ${value}\n`);
    if (!isGood) process.exitCode = 1;
  };
  const sorted = outcome.latenciesMs.toSorted((one, other) => one - other);
  const failed = outcome.failedRequests + outcome.closedSockets;
  row('memory of the hub before they come', `${emptyMiB.toFixed(0)} MiB`);
  row('memory of the hub with all pages open', `${openMiB.toFixed(0)} MiB`);
  row('processor time of all logins', `${login.toFixed(2)} s`);
  row('processor time of all starts', `${start.toFixed(2)} s`);
  row('cores that forward', ((busySeconds - idleSeconds) / seconds).toFixed(3));
  row('cores with all pages open, nobody asking', (idleSeconds / seconds).toFixed(3));
  row(
    'requests that failed, and WebSockets that were closed',
    `${failed} of ${(sorted.length + failed).toLocaleString('en')}`,
    '0',
    failed === 0,
  );
  row(
    'a request: p50 / p99',
    [0.5, 0.99].map((share) => `${percentile(sorted, share).toFixed(1)}`).join(' / ') + ' ms',
  );
}

async function startServer({ apiUrl }: HubFolder, name: string): Promise<void> {
  const headers = { authorization: `token ${adminToken}` };
  const { status } = await fetch(`${apiUrl}/users/${name}/server`, { method: 'POST', headers });
  if (status === 201) return;
  if (status !== 202) throw new Error(`the server of ${name} did not start: ${status}`);
  // Of a slow machine: it is accepted, and goes on.
  await until(async () => {
    const answer = await fetch(`${apiUrl}/users/${name}`, { headers });
    const { servers } = (await answer.json()) as { servers: Record<string, { ready: boolean }> };
    return servers['']?.ready === true;
  }, `the server of ${name} is ready`);
}

async function cpuOf(cpuSeconds: () => number, work: () => Promise<unknown>): Promise<number> {
  const before = cpuSeconds();
  await work();
  return cpuSeconds() - before;
}

async function eachOf<Item, Result>(
  items: readonly Item[],
  work: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const waiting = items.entries();
  const worker = async () => {
    for (const [index, item] of waiting) results[index] = await work(item, index);
  };
  await Promise.all(Array.from({ length: arrivingAtOnce }, worker));
  return results;
}

/** The least of some seconds, which is what is left when it has collected. */
async function leastMemoryMiB({ pid }: HubProcess): Promise<number> {
  let kibibytes = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < 20; turn += 1) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    kibibytes = Math.min(kibibytes, Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]));
    await pause(1_000);
  }
  return kibibytes / 1_024;
}
