/**
 * Prints the sum of the runs whose files are given, as `N passed, N failed, N skipped`. Ends with 1 when a
 * test failed or was left out.
 */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { type FailedRun, totalsLine } from './failed-run.ts';

const runs = process.argv
  .slice(2)
  .map((file) => JSON.parse(readFileSync(file, 'utf8')) as FailedRun);
for (const test of runs.flatMap(({ leftOut }) => leftOut)) console.log(`Left out: ${test}`);
console.log(totalsLine(runs));
if (runs.some(({ counts }) => counts.failed + counts.skipped > 0)) process.exitCode = 1;
