/**
 * What idle servers cost the hub: its memory, its processor time and how often it wakes up, with leases, polls, logs,
 * ledger and idleness at their usual intervals. Writes bench/results/idle.md.
 * `npm run bench -- idle --servers=2000 --seconds=90`
 */

import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createHubFolder } from '../test/support/hub-process.ts';
import { pathOf, requires } from '../test/support/requires.ts';
import { exactCpuSeconds } from './gateway/pinned-process.ts';
import { writeResultsTable } from './results-table.ts';

const { values } = parseArgs({
  options: {
    servers: { type: 'string', default: '2000' },
    seconds: { type: 'string', default: '90' },
  },
});
const [count, seconds] = [Number(values.servers), Number(values.seconds)];
const fullCount = 2_000;
const limits = { mebibytes: 260, coreShare: 0.03, idleWakeUps: 20 };
const adminToken = 'admin-service-token';
const startsAtOnce = 40;
/** For what the starts have left to be done: what is done each 30 seconds is done then. */
const settlingMs = 35_000;

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
if (!requires('busybox')) throw new Error('busybox is missing');
await using folder = await createHubFolder({
  Hub: { concurrent_spawn_limit: 0, log_level: 'warn', cleanup_servers: true },
  Spawner: {
    cmd: [pathOf('busybox'), 'httpd', '-f', '-p', '{ip}:{port}', '-h', '.'],
    access: 'gateway',
    idle_timeout_seconds: 86_400,
    start_timeout: 300,
    http_timeout: 300,
  },
});
const rows: string[][] = [];
const hub = await folder.start();
await pause(settlingMs);
report('without servers', await measure(hub.pid), true);
await startServers();
await pause(settlingMs);
report(`with ${count} idle servers`, await measure(hub.pid), false);
hub.signal('SIGTERM');
await hub.exited;
await writeResultsTable({
  name: 'idle',
  heading: `${count} idle servers`,
  setting: `The app is \`busybox httpd\` behind the gateway. Each figure is of ${seconds} seconds in which nobody does anything.`,
  rows,
  isPartial: count !== fullCount,
});

interface Cost {
  readonly mebibytes: number;
  /** Of one core. */
  readonly share: number;
  readonly wakeUps: number;
}

function report(when: string, { mebibytes, share, wakeUps }: Cost, isEmpty: boolean): void {
  const row = (what: string, value: string, limit = '', isGood = true) => {
    rows.push([`${what} ${when}`, value, limit, limit === '' ? '' : isGood ? 'yes' : 'NO']);
    process.stderr.write(`${what} ${when}: ${value}\n`);
    if (!isGood) process.exitCode = 1;
  };
  const [memory, processor] = [`${mebibytes.toFixed(0)} MiB`, `${(share * 100).toFixed(1)} %`];
  const wakes = wakeUps.toFixed(1);
  if (isEmpty) {
    row('memory of the hub', memory);
    row('processor, of one core,', processor);
    row('wake-ups a second', wakes, `≤ ${limits.idleWakeUps}`, wakeUps <= limits.idleWakeUps);
    return;
  }
  row('memory of the hub', memory, `≤ ${limits.mebibytes} MiB`, mebibytes <= limits.mebibytes);
  row('processor, of one core,', processor, '≤ 3 %', share <= limits.coreShare);
  row('wake-ups a second', wakes);
}

async function startServers(): Promise<void> {
  const headers = { authorization: `token ${adminToken}`, 'content-type': 'application/json' };
  const api = (path: string, body: unknown = {}) =>
    fetch(`${folder.apiUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  async function untilReady(name: string): Promise<void> {
    for (;;) {
      const answer = await fetch(`${folder.apiUrl}/users/${name}`, { headers });
      const { servers } = (await answer.json()) as { servers: Record<string, { ready: boolean }> };
      if (servers['']?.ready === true) return;
      if (servers[''] === undefined) throw new Error(`the server of ${name} did not start`);
      await pause(1_000);
    }
  }
  const names = Array.from({ length: count }, (_, index) => `user-${index}`);
  for (let from = 0; from < count; from += 500)
    await api('/users', { usernames: names.slice(from, from + 500) });
  const waiting = names.values();
  const worker = async () => {
    for (const name of waiting) {
      const { status } = await api(`/users/${name}/server`);
      // Of a slow machine: it is accepted, and goes on.
      if (status === 202) await untilReady(name);
      else if (status !== 201) throw new Error(`the server of ${name} did not start: ${status}`);
    }
  };
  await Promise.all(Array.from({ length: startsAtOnce }, worker));
}

/** Its least memory in that time, which is what is left when it has collected. */
async function measure(pid: number): Promise<Cost> {
  const before = await countersOf(pid);
  const since = performance.now();
  let kibibytes = Number.POSITIVE_INFINITY;
  while (performance.now() - since < seconds * 1_000) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    kibibytes = Math.min(kibibytes, Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]));
    await pause(1_000);
  }
  const elapsed = (performance.now() - since) / 1_000;
  const after = await countersOf(pid);
  return {
    mebibytes: kibibytes / 1_024,
    share: (after.cpuSeconds - before.cpuSeconds) / elapsed,
    wakeUps: (after.switches - before.switches) / elapsed,
  };
}

/** Of all its threads: processor time, and how often they gave the processor up (proc(5)). */
async function countersOf(pid: number) {
  let switches = 0;
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const status = await readFile(`/proc/${pid}/task/${thread}/status`, 'utf8').catch(() => '');
    switches += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  }
  // Counted in ticks, what timers start would count as a whole tick, or as none.
  return { cpuSeconds: exactCpuSeconds({ pid }), switches };
}
