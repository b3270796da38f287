/**
 * Runs the test files that failed in a run of all once more, by themselves, when few did: what then passes depends on
 * what runs beside it, which is a fault of the test and told as such, but no reason to refuse the program. Ends with 1
 * unless all pass. Its first argument is the file that the reporter beside this script wrote, which then tells what
 * failed twice; the others go to Vitest.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import {
  afterSecondRun,
  type FailedRun,
  failureLines,
  problemLines,
  refusalOf,
} from './failed-run.ts';

const [file = '', ...vitestArguments] = process.argv.slice(2);
const run = readRun(file);
const refusal = refusalOf(run);
if (refusal !== undefined) {
  console.error(`Nothing is tried again. ${refusal}`);
  process.exit(1);
}

const paths = run.files.map(({ path }) => path);
console.log(`Trying again, alone: ${paths.join(', ')}`);
const vitest = join(
  dirname(createRequire(import.meta.url).resolve('vitest/package.json')),
  'vitest.mjs',
);
const directory = mkdtempSync(join(tmpdir(), 'hub-failed-again-'));
const again = join(directory, 'run.json');
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--maxWorkers=1', ...vitestArguments, ...paths],
  { stdio: 'inherit', env: { ...process.env, FAILED_TESTS: again } },
);
const second = readRun(again);
rmSync(directory, { recursive: true });
const problems = problemLines(second);
if (!second.isFinished || (status !== 0 && problems.length === 0)) {
  console.error('The second run has not come to its end.');
  process.exit(1);
}
const { run: after, flaky } = afterSecondRun(run, second);
writeFileSync(file, JSON.stringify(after));
const line = '='.repeat(100);
console.log([line, ...failureLines('FLAKY', flaky), ...problems, line].join('\n'));
if (status !== 0) process.exit(1);

/** An empty one that is not finished where none was written. */
function readRun(path: string): FailedRun {
  const written = existsSync(path) ? readFileSync(path, 'utf8') : '';
  if (written !== '') return JSON.parse(written) as FailedRun;
  return {
    counts: { passed: 0, failed: 0, skipped: 0 },
    leftOut: [],
    files: [],
    unhandledErrors: [],
    isFinished: false,
  };
}
