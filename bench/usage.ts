/**
 * The page Use of a hub whose ledger has very many sums, on one core: `npm run bench -- usage --rows=10000000
 * --users=20000 --requests=200`. Writes bench/results/usage.md.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { submitLogin } from '../test/support/test-hub.ts';
import { userNames } from './api/contender.ts';
import { databaseFile, startHub } from './api/hub.ts';
import { proxyCore } from './gateway/pinned-process.ts';
import { fillHub, largeGroup } from './pages/large-hub.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile } from './servers/health-probe.ts';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    users: { type: 'string', default: '20000' },
    requests: { type: 'string', default: '200' },
  },
});
const [rowCount, userCount, requestCount] = [values.rows, values.users, values.requests].map(
  Number,
) as [number, number, number];
const groupCount = 100;
const maxMs = 100;

const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));
const names = userNames(userCount);
await fillHub(directory, { userNames: names, groupCount });
fillLedger();
const hub = disposables.use(
  await startHub({
    core: proxyCore,
    directory,
    program: 'source',
    adminUsers: ['root'],
    services: [],
  }),
);
const browser = new FakeBrowser();
await submitLogin(browser, hub.url ?? '', 'root', 'test');
const user = names[userCount / 2] ?? '';
const rows: string[][] = [];
for (const path of [
  'hub/admin/usage',
  'hub/admin/usage?sort=cpu_hours',
  `hub/admin/usage?name=${user}`,
  'hub/admin/usage?by=group',
  `hub/admin/usage?by=group&name=${largeGroup}`,
  'hub/usage',
]) {
  const times: number[] = [];
  // The first ones compile what the page needs.
  for (let index = -10; index < requestCount; index += 1) {
    const startedAt = performance.now();
    const { status } = await browser.request((hub.url ?? '') + path);
    if (status !== 200) throw new Error(`${path} was answered with ${status}`);
    if (index >= 0) times.push(performance.now() - startedAt);
  }
  times.sort((one, other) => one - other);
  const p99 = percentile(times, 0.99);
  rows.push([
    `\`/${path}\`, p50 / p99`,
    `${percentile(times, 0.5).toFixed(1)} / ${p99.toFixed(1)} ms`,
    `p99 < ${maxMs} ms`,
    p99 < maxMs ? 'yes' : 'NO',
  ]);
}
await writeResultsTable({
  name: 'usage',
  heading: 'The page Use with a large ledger',
  setting: `${rowCount.toLocaleString('en')} sums of ${userCount.toLocaleString('en')} users and ${groupCount} groups by day and month; ${requestCount} requests for each page, one after the other, to a hub on one core.`,
  rows,
});
if (rows.some((row) => row.at(-1) === 'NO')) process.exitCode = 1;

/** So many sums: of all users and groups, by day back from now, and by month. */
function fillLedger(): void {
  using database = new DatabaseSync(join(directory, databaseFile));
  database.exec('pragma synchronous = off; pragma journal_mode = off; pragma cache_size = -500000');
  database.exec('drop index usage_totals_subject');
  const days = Math.ceil(rowCount / (userCount + groupCount + 2));
  const amounts = '1e4, abs(random() % 30000), 2e4, 0, abs(random() % 100)';
  for (const span of ['day', 'month']) {
    const start = `'start of ${span}'`;
    const units = span === 'day' ? days : Math.ceil(days / 30);
    database.exec(`
      with recursive times (n) as (select 0 union all select n + 1 from times where n + 1 < ${units}),
        subjects (kind, id, name) as (
          select 'user', id, name from users union all select 'group', id, name from groups union all select 'all', '', '')
      insert into usage_totals (kind, subject, span, at, label, wall_seconds, cpu_seconds, gib_seconds, gpu_seconds, cost)
      select kind, id, '${span}', unixepoch('now', ${start}, '-' || n || ' ${span}s') * 1000, name, ${amounts}
      from times cross join subjects where true`);
  }
  database.exec('create index usage_totals_subject on usage_totals (kind, subject, span, at)');
}
