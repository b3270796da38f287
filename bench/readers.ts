/**
 * What readers cost that ask and do not read: the processor time of each address that needs no login, what others
 * notice while 1,000 slow readers ask for each, and what a hub holds for 100 readers of chunks of one byte. Writes
 * bench/results/readers.md. `node bench/readers.ts --seconds=30 --readers=1000`
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createHubFolder, type HubProcess } from '../test/support/hub-process.ts';
import { until } from '../test/support/test-hub.ts';
import { exactCpuSeconds, meteredProcess } from './gateway/pinned-process.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile, startHealthProbe } from './servers/health-probe.ts';

const limits = { othersP99Ms: 500, failedMs: 10_000, grownMiB: 120, healthP99Ms: 100 };
const requestsForCpu = 300;
/** A tenth above the login page is within what two measurements differ by. */
const costShare = 1.1;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    readers: { type: 'string', default: '1000' },
  },
});
const seconds = Number(values.seconds);
const readerCount = Number(values.readers);
const rows: string[][] = [];

function report(what: string, value: string, limit = '', isGood = true): void {
  rows.push([what, value, limit, limit === '' ? '' : isGood ? 'yes' : 'NO']);
  process.stderr.write(`${what}: ${value}${isGood ? '' : ' (NO)'}\n`);
  if (!isGood) process.exitCode = 1;
}

await run();

async function run(): Promise<void> {
  await using tiny = await forked('tiny-chunks.ts');
  await using readers = await forked('readers.ts');
  await using folder = await createHubFolder({
    Hub: {
      log_level: 'error',
      services: [{ name: 'tiny', url: `http://127.0.0.1:${tiny.said}`, access: 'public' }],
    },
    Proxy: { access_log: false },
  });
  const hub = await folder.start();
  const addresses = await publicAddresses(folder.url);
  await measureCost(hub, addresses);
  await measureTinyChunks(hub, readers.child, folder.url);
  for (const url of addresses) await measureOthers(url, readers.child, folder.url);
  hub.signal('SIGTERM');
  await hub.exited;
  await writeResultsTable({
    name: 'readers',
    heading: 'Readers that ask and do not read',
    setting:
      `${readerCount} slow readers, of which 200 open a second and ask three times each, for ${seconds} seconds at each ` +
      `address. Others ask 50 times a second for the version of the API. Hub and readers share the cores.`,
    rows,
  });
}

/** Those that answer without a login, the login page first. */
async function publicAddresses(base: string): Promise<string[]> {
  const page = await (await fetch(`${base}hub/login`)).text();
  const style = /href="([^"]+\.css[^"]*)"/.exec(page)?.[1] ?? '';
  const paths = [
    '/hub/login',
    '/hub/api/openapi.json',
    style,
    '/hub/api/assertion-keys',
    '/hub/api/',
    '/hub/health',
    '/hub/ready',
    '/hub/nothing-here',
    '/hub/home',
    '/user/nobody/',
    '/hub/api/oauth2/authorize',
    '/.well-known/oauth-authorization-server',
    '/favicon.ico',
  ];
  return paths.map((path) => new URL(path, base).href);
}

async function measureCost(hub: HubProcess, addresses: readonly string[]): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  let loginMs = 0;
  for (const url of addresses) {
    let bytes = 0;
    for (let count = 0; count < requestsForCpu; count += 1) bytes = await bytesOf(url, agent);
    const beforeSeconds = exactCpuSeconds(hub);
    for (let count = 0; count < requestsForCpu; count += 1) await bytesOf(url, agent);
    const costMs = ((exactCpuSeconds(hub) - beforeSeconds) * 1000) / requestsForCpu;
    if (loginMs === 0) loginMs = costMs;
    report(
      `processor time of ${new URL(url).pathname} (${bytes} bytes)`,
      `${costMs.toFixed(2)} ms`,
      `≤ ${costShare} × login page`,
      costMs <= loginMs * costShare,
    );
  }
  agent.destroy();
}

async function measureOthers(url: string, readers: ChildProcess, base: string): Promise<void> {
  readers.send({ url, count: readerCount });
  const others = await startHealthProbe(`${base}hub/api/`);
  await pause(seconds * 1000);
  const latenciesMs = await others.stop();
  await closeAll(readers);
  const failed = latenciesMs.filter((ms) => ms > limits.failedMs).length;
  const [half = 0, max = 0, longest = 0] = [0.5, 0.99, 1].map((share) =>
    percentile(latenciesMs, share),
  );
  report(
    `others while ${new URL(url).pathname} is asked for: failed; p50 / p99 / longest of ${latenciesMs.length}`,
    `${failed}; ${half.toFixed(1)} / ${max.toFixed(1)} / ${longest.toFixed(1)} ms`,
    `0; p99 < ${limits.othersP99Ms} ms`,
    failed === 0 && max < limits.othersP99Ms,
  );
}

async function measureTinyChunks(
  hub: HubProcess,
  readers: ChildProcess,
  base: string,
): Promise<void> {
  const app = `${base}services/tiny/`;
  await until(async () => (await fetch(app)).status === 200, 'the service is forwarded to');
  const metered = meteredProcess(hub.pid);
  const residentMiB = () => metered.residentBytes() / 2 ** 20;
  const beforeMiB = residentMiB();
  const health = await startHealthProbe(`${base}hub/health`);
  readers.send({ url: `${app}endless`, count: 100 });
  let maxMiB = beforeMiB;
  for (let second = 0; second < seconds; second += 1) {
    await pause(1_000);
    maxMiB = Math.max(maxMiB, residentMiB());
  }
  const latenciesMs = await health.stop();
  await closeAll(readers);
  const grownMiB = maxMiB - beforeMiB;
  report(
    'memory that 100 readers of chunks of one byte take',
    `${grownMiB.toFixed(0)} MiB of ${maxMiB.toFixed(0)}`,
    `< ${limits.grownMiB} MiB`,
    grownMiB < limits.grownMiB,
  );
  const p99Ms = percentile(latenciesMs, 0.99);
  report(
    `health meanwhile: p99 of ${latenciesMs.length}`,
    `${p99Ms.toFixed(1)} ms`,
    `< ${limits.healthP99Ms} ms`,
    p99Ms < limits.healthP99Ms,
  );
}

async function closeAll(readers: ChildProcess): Promise<void> {
  readers.send({ url: '', count: 0 });
  await once(readers, 'message');
  await pause(1_000);
}

function bytesOf(url: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    get(url, { agent, headers: { accept: 'text/html' } }, (answer) => {
      let bytes = 0;
      answer.on('data', (piece: Buffer) => {
        bytes += piece.length;
      });
      answer.once('end', () => resolve(bytes));
    }).once('error', reject);
  });
}

async function forked(
  file: string,
): Promise<{ readonly child: ChildProcess; readonly said: unknown } & AsyncDisposable> {
  const child = fork(join(import.meta.dirname, 'readers', file));
  const [said] = (await once(child, 'message')) as [unknown];
  return {
    child,
    said,
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, 'exit');
    },
  };
}

async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
