/**
 * Several hubs and gateways on one PostgreSQL and one Redis behind HAProxy: what kills, restarts and
 * revocations cost. Writes bench/results/cluster.md. `npm run bench -- cluster --kills=100 --seed=1`
 */
import { parseArgs } from 'node:util';
import { measureAtRest } from './cluster/at-rest.ts';
import { startFleet } from './cluster/fleet.ts';
import { gatewayLoad, measureGateways } from './cluster/gateways.ts';
import { killAtRandom } from './cluster/kills.ts';
import { measureRevocations, measureWithDeadFeeds } from './cluster/revocation.ts';
import { restartEach } from './cluster/rolling.ts';
import { measureTakeover } from './cluster/takeover.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile } from './servers/health-probe.ts';

const parts = [
  'kills',
  'revocation',
  'dead-feeds',
  'rolling',
  'gateways',
  'rest',
  'takeover',
] as const;
const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    revocations: { type: 'string', default: '100' },
    servers: { type: 'string', default: '500' },
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    only: { type: 'string', default: parts.join(',') },
  },
});
const wanted = new Set(values.only.split(','));
const rows: string[][] = [];
const startedAt = performance.now();

function say(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stderr.write(`${seconds.padStart(7)} s  ${text}\n`);
}

function report(what: string, value: string, limit: string, isGood: boolean): void {
  rows.push([what, value, limit, isGood ? 'yes' : 'NO']);
  say(`${what}: ${value}`);
  if (!isGood) process.exitCode = 1;
}

if (wanted.has('kills')) {
  const found = await killAtRandom({ kills: Number(values.kills), seed: Number(values.seed), say });
  const { lost, doubles, orphans, recoveredMs, acknowledged, kills } = found;
  for (const what of [...lost, ...doubles, ...orphans]) say(`NOT AS IT MUST BE: ${what}`);
  say(`answers: ${JSON.stringify(found.outcomes)}`);
  const count = Object.entries(kills)
    .map(([what, total]) => `${total} × ${what}`)
    .join(', ');
  const none = (list: readonly string[]) => [`${list.length}`, '0', list.length === 0] as const;
  report(`acknowledged writes lost, of ${acknowledged}, after kills (${count})`, ...none(lost));
  report('services or servers seen running twice', ...none(doubles));
  report('processes left behind', ...none(orphans));
  const longest = recoveredMs.at(-1) ?? Number.NaN;
  report(
    'all services up again after a kill, median / longest',
    `${seconds(percentile(recoveredMs, 0.5))} / ${seconds(longest)}`,
    '≤ 20 s',
    longest <= 20_000,
  );
}
if (wanted.has('revocation')) {
  await using fleet = await startFleet({ hubs: 3, gateways: 0 });
  const delaysMs = await measureRevocations(fleet, Number(values.revocations));
  const p99 = percentile(delaysMs, 0.99);
  report(
    `WebSocket closed at another hub after a revocation, p50 / p99 of ${delaysMs.length}`,
    `${percentile(delaysMs, 0.5).toFixed(0)} / ${p99.toFixed(0)} ms`,
    'p99 < 1,000 ms',
    p99 < 1_000,
  );
}
if (wanted.has('dead-feeds')) {
  await using fleet = await startFleet({ hubs: 3, gateways: 0, hasSilentFeeds: true });
  const delaysMs = await measureWithDeadFeeds(fleet, Number(values.revocations));
  const longest = delaysMs.at(-1) ?? Number.NaN;
  report(
    `the same while the connections that tell of it are silently dead, p50 / longest of ${delaysMs.length}`,
    `${seconds(percentile(delaysMs, 0.5))} / ${seconds(longest)}`,
    '< 5 s',
    longest < 5_000,
  );
}
if (wanted.has('rolling')) {
  await using fleet = await startFleet({
    hubs: 3,
    gateways: 0,
    localGateways: 1,
    serversEcho: true,
  });
  const { requests, failed, webSockets, dropped } = await restartEach(fleet, say);
  const failures = Object.values(failed).reduce((sum, total) => sum + total, 0);
  if (failures > 0) say(JSON.stringify(failed));
  report(
    `requests to servers failed while each hub restarted, of ${requests}`,
    `${failures}`,
    '0',
    failures === 0,
  );
  report(`WebSockets dropped meanwhile, of ${webSockets}`, `${dropped}`, '0', dropped === 0);
}
if (wanted.has('gateways')) {
  const { rounds, seconds } = values;
  const found = await measureGateways({ rounds: Number(rounds), seconds: Number(seconds), say });
  const { throughputRatio, cpuRatio, summaries } = found;
  for (const summary of summaries) say(summary);
  report(
    `throughput of 2 gateway processes against 1 (${gatewayLoad})`,
    `${throughputRatio.toFixed(2)} ×`,
    '≥ 1.3 ×',
    throughputRatio >= 1.3,
  );
  report(
    'CPU for each request of 2 gateway processes against 1',
    `${cpuRatio.toFixed(2)} ×`,
    'within 10 %',
    cpuRatio <= 1.1,
  );
}
if (wanted.has('rest')) {
  const { residentMiB, statementsPerSecond, byStatement } = await measureAtRest();
  for (const [text, rate] of byStatement) say(`${rate.toFixed(2)}/s  ${text}`);
  report(
    'memory of an instance with 10,000 routes and 2,000 running servers',
    `${residentMiB.toFixed(0)} MiB`,
    '≤ 250 MiB',
    residentMiB <= 250,
  );
  report(
    'its statements at rest',
    `${statementsPerSecond.toFixed(1)} a second`,
    '≤ 5 a second',
    statementsPerSecond <= 5,
  );
}
if (wanted.has('takeover')) {
  const taken = await measureTakeover(Number(values.servers));
  report(
    `${taken.servers} servers of a killed instance taken over, ${taken.missing} missing`,
    `${taken.seconds.toFixed(1)} s`,
    '< 30 s',
    taken.seconds < 30 && taken.missing === 0,
  );
  report(
    'health meanwhile, p99',
    `${taken.healthP99Ms.toFixed(1)} ms`,
    '< 50 ms',
    taken.healthP99Ms < 50,
  );
}
await writeResultsTable({
  name: 'cluster',
  heading: 'Several hubs and gateways',
  database: 'PostgreSQL 15 and Redis',
  setting: 'Everything, the measuring program too, shares the cores.',
  rows,
  isPartial: parts.some((part) => !wanted.has(part)),
});

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
