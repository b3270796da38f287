/**
 * Prints what is wrong with the runs whose files are given, and their sum as `N passed, N failed, N skipped`. Ends with
 * 1 when a test failed or was left out.
 */
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { type FailedRun, problemLines, totalsLine } from './failed-run.ts';

const runs = process.argv
  .slice(2)
  .map((file) => JSON.parse(readFileSync(file, 'utf8')) as FailedRun);
for (const test of runs.flatMap(({ leftOut }) => leftOut)) console.log(`Left out: ${test}`);
for (const line of runs.flatMap(problemLines)) console.log(line);
console.log(totalsLine(runs));
if (runs.some(({ counts }) => counts.failed + counts.skipped > 0)) process.exitCode = 1;
