/**
 * What the audit log costs: one hub records every other request and measures the CPU time of each.
 * `npm run bench -- audit --database=postgres --audit-rows=1000000`. Writes bench/results/audit.md, or a file with the
 * options in its name.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/support/postgres.ts';
import { userNames } from './api/contender.ts';
import { lostPercent } from './audit/lost.ts';
import { startSide, type Work } from './audit/side.ts';
import { loadCore } from './gateway/pinned-process.ts';
import { machineName } from './gateway/report.ts';
import { median } from './gateway/rounds.ts';

const { values } = parseArgs({
  options: {
    /** `sqlite` or `postgres`. */
    database: { type: 'string', default: 'sqlite' },
    /** How much is in the audit log at the start. */
    'audit-rows': { type: 'string', default: '0' },
    /** Only rows that begin with this, and nothing is written. */
    only: { type: 'string', default: '' },
  },
});
const auditRows = Number(values['audit-rows']);
const maxLostPercent = 5;
const members = userNames(1_000);

const memberOf = (index: number) => members[index % members.length] ?? '';
const work: readonly Work[] = [
  { label: 'create a user', method: 'POST', path: (index) => `/users/new-${index}`, count: 12_000 },
  {
    label: 'create a token',
    method: 'POST',
    path: (index) => `/users/${memberOf(index)}/tokens`,
    body: () => ({ note: 'bench' }),
    count: 12_000,
  },
  {
    label: 'make a user an administrator, and not',
    method: 'PATCH',
    path: (index) => `/users/${memberOf(Math.floor(index / 2))}`,
    body: (index) => ({ admin: index % 2 === 0 }),
    count: 12_000,
  },
  {
    label: 'create a group',
    method: 'POST',
    path: (index) => `/groups/group-${index}`,
    count: 12_000,
  },
  {
    label: 'read a user',
    method: 'GET',
    path: (index) => `/users/${memberOf(index)}`,
    count: 8_000,
  },
  {
    label: 'read a page of 50 users',
    method: 'GET',
    path: () => '/users?limit=50',
    count: 8_000,
  },
  {
    // Last, because it leaves so many behind.
    label: 'create 500 users in a request',
    method: 'POST',
    path: () => '/users',
    body: (index) => ({ usernames: userNames(500).map((name) => `${name}-${index}`) }),
    count: 200,
  },
];

const progress = (line: string) => process.stderr.write(`${line}\n`);
// The hub has the other core for itself.
execFileSync('taskset', ['-acp', String(loadCore), String(process.pid)], { stdio: 'ignore' });
const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));
const isPostgres = values.database === 'postgres';
const postgres = isPostgres ? disposables.use(await startPostgres()) : undefined;

const side = disposables.use(
  await startSide({
    directory: join(directory, 'hub'),
    members,
    auditRows,
    postgres: postgres && { url: await postgres.createDatabase(), pid: postgres.pid },
  }),
);

/** Microseconds of CPU for the row of one request, to be moved into the indexed log later on. */
async function measureMoving(each: Work): Promise<number> {
  const count = Math.min(each.count / 20, 200);
  await side.move();
  const nothing = await side.move();
  await side.send(each, count);
  return ((await side.move()) - nothing) / count;
}

const lines: string[] = [];
let isMissed = false;
for (const each of work.filter(({ label }) => label.startsWith(values.only))) {
  // Until everything is compiled, with and without.
  await side.measure({ ...each, count: each.count / 4 });
  const samples = await side.measure(each);
  const costOf = (isOn: boolean) =>
    median(samples.filter(({ on }) => on === isOn).map(({ micros }) => micros)).toFixed(0);
  const lost = lostPercent(samples);
  isMissed ||= lost.figure > maxLostPercent;
  const cells = [
    each.label,
    `${costOf(true)} µs`,
    `${costOf(false)} µs`,
    `${lost.figure.toFixed(1)} %`,
    `${lost.low.toFixed(1)} to ${lost.high.toFixed(1)} %`,
    lost.figure <= maxLostPercent ? 'reached' : '**missed**',
    each.method === 'GET' ? '' : `${(await measureMoving(each)).toFixed(0)} µs`,
  ];
  lines.push(`| ${cells.join(' | ')} |`);
  progress(lines.at(-1) ?? '');
}

const name = [
  'audit',
  ...(isPostgres ? ['postgres'] : []),
  ...(auditRows > 0 ? [`${auditRows}-rows`] : []),
].join('-');
const options = process.argv.slice(2).map((option) => ` ${option}`);
const markdown = [
  '# What the audit log costs',
  '',
  `${new Date().toISOString().slice(0, 10)}, ${machineName()}, Node ${process.version.slice(1)}, ${isPostgres ? 'PostgreSQL' : 'SQLite'}, ${auditRows.toLocaleString('en')} rows in the audit log at the start. Made by \`npm run bench -- audit${options.join('')}\`.`,
  '',
  `- CPU time of a request, in all threads of the hub${isPostgres ? ' and in its connections to PostgreSQL' : ''}; medians.`,
  '- One hub, on a core of its own, gets one request after the other: four of each eight it records, and of four it does not even find out who acts.',
  '- Lost: how many fewer requests it serves in the same time; the median over each eight. Between: where that is in 95 of 100 such measurements.',
  '- What comes once in many requests is not in a median: checkpoints of the database, collections of garbage.',
  '- Later: to move the row into the indexed log, with many others, while no request waits.',
  `- Wanted: at most ${maxLostPercent} % lost.`,
  '',
  '| what | with | without | lost | between | | later |',
  '|---|--:|--:|--:|--:|---|--:|',
  ...lines,
  '',
].join('\n');
if (values.only === '')
  await writeFile(join(import.meta.dirname, 'results', `${name}.md`), markdown);
process.stdout.write(markdown);
if (isMissed) process.exitCode = 1;
