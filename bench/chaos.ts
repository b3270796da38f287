/**
 * Everything around a hub breaks, under mixed traffic: processes are killed and frozen, the database
 * goes away, the disk of the log is full, the clock jumps. Then counts what was lost, what was left
 * behind and what the hub holds, and writes it to bench/results/chaos.md. The same seed gives the same
 * order of faults: `npm run bench -- chaos --seconds=180 --seed=1 --database=postgres`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { hasPostgres } from '../test/support/postgres.ts';
import { type ChaosReport, chaos, type Database } from './chaos/chaos.ts';

/** What caches may have come to hold, which all have an upper limit. */
const heapAllowanceBytes = 16 * 2 ** 20;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '180' },
    seed: { type: 'string', default: '1' },
    database: { type: 'string', default: hasPostgres() ? 'sqlite,postgres' : 'sqlite' },
  },
});
const seed = Number(values.seed);
const databases = values.database.split(',') as Database[];
const seconds = Number(values.seconds) / databases.length;
console.log(`seed ${seed}`);

const reports: ChaosReport[] = [];
for (const database of databases) {
  const startedAt = performance.now();
  const at = () => `${((performance.now() - startedAt) / 1000).toFixed(1)} s`.padStart(8);
  const say = (text: string) => console.log(`${database} ${at()}  ${text}`);
  reports.push(await chaos({ database, seconds, seed, say }));
}

const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
const verdicts = reports.map((report) => {
  const { before, after } = report;
  return [
    ['acknowledged writes lost', report.lost.length, report.lost.length === 0],
    ['processes left behind', report.orphans.length, report.orphans.length === 0],
    [
      'open files before and after',
      `${before.files.length}, ${after.files.length}`,
      after.files.length <= before.files.length,
    ],
    [
      'heap in use before and after, collected',
      `${mebibytes(before.heapBytes)}, ${mebibytes(after.heapBytes)}`,
      after.heapBytes <= before.heapBytes + heapAllowanceBytes,
    ],
    ['otherwise not as it must be', report.blamed.length, report.blamed.length === 0],
  ] as const;
});
const text = `# Chaos

${Number(values.seconds)} seconds of faults under logins, API writes, starts and stops of servers, forwarded requests and
WebSockets. For half of the time the hub itself was killed as well; one process endured the rest. Seed ${seed}, Node
${process.versions.node}.

${reports.map(toMarkdown).join('\n')}`;
console.log(text);
const folder = join(import.meta.dirname, 'results');
await mkdir(folder, { recursive: true });
await writeFile(join(folder, 'chaos.md'), text);
if (verdicts.flat().some(([, , isGood]) => !isGood)) process.exitCode = 1;

function describeFiles({ files }: ChaosReport['before']): string {
  const kinds = Map.groupBy(files, (file) => file.replace(/:\[\d+\]$/, ''));
  return [...kinds]
    .map(([kind, { length }]) => `${length} × ${kind}`)
    .sort()
    .join(', ');
}

function toMarkdown(report: ChaosReport, index: number): string {
  const list = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts)
      .sort(([left], [right]) => left.localeCompare(right))
      .map(([what, total]) => `${total} × ${what}`)
      .join(', ');
  const rows = (verdicts[index] ?? []).map(
    ([what, value, isGood]) => `| ${what} | ${value} | ${isGood ? 'yes' : 'NO'} |`,
  );
  const failures = [
    ...report.lost.map((what) => `lost: ${what}`),
    ...report.orphans.map(({ pid, command }) => `left behind: ${pid} ${command}`),
    ...report.blamed,
    ...(report.after.files.length > report.before.files.length
      ? [`open before: ${describeFiles(report.before)}; after: ${describeFiles(report.after)}`]
      : []),
  ];
  return `## ${report.database === 'sqlite' ? 'SQLite' : 'PostgreSQL'}

| | | as it must be |
|---|---|---|
${rows.join('\n')}

Acknowledged writes: ${report.acknowledged}.

Faults: ${list(report.faults)}.${report.hasLogDisk ? '' : ' No disk could be mounted to be filled.'}

Answers: ${list(report.outcomes)}.
${failures.map((failure) => `\n- ${failure}\n`).join('')}`;
}
