/**
 * The ledger against the counters of the kernel: three hubs on one PostgreSQL, of which one after the other is killed
 * while their servers work. Writes bench/results/ledger.md. `npm run bench -- ledger --kills=60 --servers=24 --seed=1`
 */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { queryPostgres } from '../test/support/postgres.ts';
import { createRandom } from './chaos/random.ts';
import { startFleet } from './cluster/fleet.ts';
import { startServersAt } from './cluster/takeover.ts';
import { writeResultsTable } from './results-table.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '60' },
    servers: { type: 'string', default: '24' },
    seed: { type: 'string', default: '1' },
  },
});
const [kills, count] = [Number(values.kills), Number(values.servers)];
const fullKills = 60;
const random = createRandom(Number(values.seed));
const maxDifference = 0.01;
/** In which the others have taken over what a killed hub had. */
const awayMs = 20_000;
const maxCountingMs = 120_000;

const app = join(import.meta.dirname, '..', 'fixtures', 'apps', 'trivial.pl');
const worker = 'for (;;) { for (1 .. 2e6) {} select undef, undef, undef, 0.5 }';
await using fleet = await startFleet({
  hubs: 3,
  gateways: 0,
  serverCommand: ['sh', '-c', `perl -e '${worker}' & exec perl ${app}`],
});
const names = Array.from({ length: count }, (_, index) => `worker-${index}`);
await Promise.all(
  fleet.hubs.map(({ url }, index) =>
    startServersAt(
      url,
      names.filter((_, at) => at % fleet.hubs.length === index),
    ),
  ),
);

for (let kill = 1; kill <= kills; kill += 1) {
  const victim = random.pick(fleet.hubs);
  await victim.end('SIGKILL');
  const isAway = random.isTrue(0.5);
  if (isAway) await pause(awayMs);
  await victim.start();
  process.stderr.write(`${kill}: ${victim.name} killed, ${isAway ? 'away' : 'back at once'}\n`);
  await pause(random.between(500, 5_000));
}

// What does nothing any more is counted to the end by whoever looks next.
const processes = await processesOfServers();
for (const { pid } of processes) process.kill(pid, 'SIGSTOP');
const [clock] = await query<{ now: string }>(
  'select extract(epoch from clock_timestamp()) * 1000 as now',
);
const stoppedAt = Math.ceil(Number(clock?.now));
const used = new Map<string, number>();
for (const { pid, serverId } of processes)
  used.set(serverId, (used.get(serverId) ?? 0) + (await cpuSecondsOf(pid)));
const deadline = performance.now() + maxCountingMs;
// Measured each ten seconds, and counted each thirty: the second count after the stop has seen the last of it.
let seen = 0;
let countedAt = stoppedAt;
while (seen < 2 && performance.now() < deadline) {
  await pause(1_000);
  const [meters] = await query<{ at: string | null; total: string }>(
    'select min(counted_at) as at, count(*) as total from server_meters',
  );
  if (Number(meters?.total) < count || Number(meters?.at) <= countedAt) continue;
  seen += 1;
  countedAt = Number(meters?.at) + 1;
}
const counted = await query<{ server_id: string; cpu: number; wall: number; rest: number }>(
  `select record.server_id, sum(record.cpu_seconds) as cpu, sum(record.wall_seconds) as wall,
     max(meter.counted_at - servers.started_at) / 1000.0 as rest
   from usage_records record join servers on servers.id = record.server_id
   join server_meters meter on meter.server_id = record.server_id group by record.server_id`,
);
for (const { pid } of processes) process.kill(pid, 'SIGKILL');

const kernel = sum(used.values());
const ledger = sum(counted.map(({ cpu }) => Number(cpu)));
const apart = counted.map(({ server_id, cpu }) => Number(cpu) / (used.get(server_id) ?? 0) - 1);
const most = apart.reduce((max, each) => (Math.abs(each) > Math.abs(max) ? each : max), 0);
const wall = sum(counted.map((each) => Number(each.wall)));
const time = sum(counted.map(({ rest }) => Number(rest)));
/** An interval of each server that the killed hubs had. */
const lostAtMost = (30 * kills * count) / fleet.hubs.length + count;
const percent = (share: number) => `${(share * 100).toFixed(2)} %`;
const rows: string[][] = [];
const report = (what: string, value: string, limit: string, isGood: boolean) => {
  rows.push([what, value, limit, isGood ? 'yes' : 'NO']);
  if (!isGood) process.exitCode = 1;
};
report('servers counted to the end', `${counted.length}`, `${count}`, counted.length === count && seen === 2);
const difference = ledger / kernel - 1;
report(
  `CPU seconds in the ledger / by the kernel`,
  `${ledger.toFixed(1)} / ${kernel.toFixed(1)} (${percent(difference)})`,
  'within 1 %',
  Math.abs(difference) <= maxDifference,
);
report('the server that is furthest off', percent(most), 'within 1 %', Math.abs(most) <= maxDifference);
report(
  'server seconds in the ledger / of the runs: no more, and no more lost than 30 s with each kill',
  `${wall.toFixed(0)} / ${time.toFixed(0)} (${percent(wall / time - 1)})`,
  `≥ ${(time - lostAtMost).toFixed(0)}`,
  wall <= time * 1.001 && wall >= time - lostAtMost,
);
await writeResultsTable({
  name: 'ledger',
  heading: `The ledger over ${kills} kills of three hubs`,
  database: 'PostgreSQL',
  setting: `${count} servers work at about a twentieth of a core each. Half of the killed hubs come back at once, half after ${awayMs / 1_000} seconds. Then the servers are frozen, and what the kernel counted for their processes is compared.`,
  rows,
  isPartial: kills !== fullKills,
});

function query<Row extends Record<string, unknown>>(statement: string): Promise<Row[]> {
  return queryPostgres<Row>(fleet.databaseUrl, statement);
}

/** By the tag that all of a server carry. */
async function processesOfServers() {
  const found: { readonly pid: number; readonly serverId: string }[] = [];
  const servers = await query<{ id: string }>('select id from servers');
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await readFile(`/proc/${name}/environ`, 'utf8').catch(() => '');
    const tag = /(?:^|\0)HUB_PROCESS_TAG=([^\0]*)/.exec(environment)?.[1] ?? '';
    const server = servers.find(({ id }) => tag.startsWith(`server-${id}#`));
    if (server !== undefined) found.push({ pid: Number(name), serverId: server.id });
  }
  return found;
}

/**
 * Of a process with one thread, to the nanosecond (`/proc/<pid>/schedstat`), and of the children it has waited for
 * (proc(5), 100 ticks a second).
 */
async function cpuSecondsOf(pid: number): Promise<number> {
  const [onCpu] = (await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ');
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(onCpu) / 1e9 + sum(fields.slice(13, 15).map(Number)) / 100;
}

function sum(amounts: Iterable<number>): number {
  return [...amounts].reduce((total, each) => total + each, 0);
}
