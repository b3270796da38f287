/**
 * Soaks a hub: 2,000 WebSockets and mixed traffic while its application dies, stalls, resets in the
 * middle of answers and comes back, and clients break off. Prints what the hub holds before and after
 * and writes it to bench/results/soak.md: `npm run bench -- soak`.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Holding } from './soak/holding.ts';
import { soak } from './soak/soak.ts';

const webSockets = 2_000;
const rounds = 10;
const requestsPerRound = 3_000;

const startedAt = performance.now();
const report = await soak({
  webSockets,
  rounds,
  requestsPerRound,
  say: (text) => console.log(text),
});
const seconds = Math.round((performance.now() - startedAt) / 1000);

const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
const lines: readonly (readonly [string, (holding: Holding) => string])[] = [
  ['open files', ({ openFiles }) => String(openFiles)],
  ['TCP sockets', ({ sockets }) => String(sockets)],
  ['heap in use, after collection', ({ heapBytes }) => mebibytes(heapBytes)],
  ['memory outside the heap', ({ externalBytes }) => mebibytes(externalBytes)],
  ['resident memory', ({ rssBytes }) => mebibytes(rssBytes)],
];
const { before, during, after } = report;
const table = lines
  .map(([what, of]) => `| ${what} | ${of(before)} | ${of(during)} | ${of(after)} |`)
  .join('\n');
const outcomes = Object.entries(report.outcomes)
  .map(([outcome, total]) => `${total} × ${outcome}`)
  .join(', ');
const text = `# Soak

${webSockets} WebSockets held open and ${rounds} × ${requestsPerRound} requests in ${seconds} seconds, on a guarded and an
open route, while the application was killed or stopped ${report.restarts} times, stalled, reset in the middle of answers, and
clients broke off. Node ${process.versions.node}.

| the hub holds | before | in the middle | after everybody left |
|---|---|---|---|
${table}

WebSockets opened: ${report.openedWebSockets}; messages echoed: ${report.echoes}. Requests: ${outcomes}.
`;
console.log(text);
const folder = join(import.meta.dirname, 'results');
await mkdir(folder, { recursive: true });
await writeFile(join(folder, 'soak.md'), text);
