/**
 * Runs the test files that failed in a run of all once more, by themselves, when few did: one that then
 * passes depends on what runs beside it, which is a fault of the test and told as such, but no reason to
 * refuse the program. Ends with 1 unless all pass. Its first argument is the file that the reporter beside
 * this script wrote, which then says so; the others go to Vitest.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { type FailedRun, flakyLines, refusalOf, withoutFailures } from './failed-run.ts';

const [file = '', ...vitestArguments] = process.argv.slice(2);
const written = existsSync(file) ? readFileSync(file, 'utf8') : '';
const run: FailedRun =
  written === ''
    ? {
        counts: { passed: 0, failed: 0, skipped: 0 },
        leftOut: [],
        files: [],
        unhandledErrors: [],
        isFinished: false,
      }
    : (JSON.parse(written) as FailedRun);
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
const { status } = spawnSync(
  process.execPath,
  [vitest, 'run', '--maxWorkers=1', ...vitestArguments, ...paths],
  { stdio: 'inherit' },
);
if (status !== 0) {
  console.error('A test failed twice, the second time with nothing beside it.');
  process.exit(1);
}
writeFileSync(file, JSON.stringify(withoutFailures(run)));
const line = '='.repeat(100);
console.log([line, ...flakyLines(run.files), line].join('\n'));
