import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FailedRun, maxFiles, refusalOf } from '../scripts/failed-tests/failed-run.ts';

const project = join(import.meta.dirname, '..');
const script = (name: string) => join(project, 'scripts', 'failed-tests', name);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'failed-tests-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** Runs what is in the folder, then what failed of it again, as the pipeline does. */
function runTwice(filter: string) {
  const failed = join(directory, `${filter}.json`);
  const options = [
    ...['--root', directory, '--globals', '--reporter=default'],
    `--reporter=${script('reporter.ts')}`,
  ];
  const begin = (...args: readonly string[]) => {
    const env = { ...process.env, FAILED_TESTS: failed, NO_COLOR: '1' };
    return spawnSync(process.execPath, args, { cwd: project, env, encoding: 'utf8' });
  };
  const first = begin(
    join(project, 'node_modules', 'vitest', 'vitest.mjs'),
    ...['run', ...options, filter],
  );
  const second = begin(script('rerun.ts'), failed, ...options);
  return { first: first.status, second: second.status, said: second.stdout + second.stderr };
}

/** What the pipeline ends with. */
function totals(filter: string) {
  const file = join(directory, `${filter}.json`);
  const { status, stdout } = spawnSync(process.execPath, [script('totals.ts'), file], {
    encoding: 'utf8',
  });
  return [status, stdout];
}

test('a test that passes when it runs alone is told as flaky and refuses nothing', async () => {
  const marker = JSON.stringify(join(directory, 'marker'));
  await writeFile(
    join(directory, 'flaky.test.js'),
    `import { existsSync, writeFileSync } from 'node:fs';
     describe('a part', () => {
       test('is fast', () => {
         const wasThere = existsSync(${marker});
         writeFileSync(${marker}, '');
         expect(wasThere, 'the machine was busy').toBe(true);
       });
       test('is fine', () => {});
     });`,
  );
  const { first, second, said } = runTwice('flaky');
  expect([first, second]).toEqual([1, 0]);
  expect(said).toContain('FLAKY: flaky.test.js: a part > is fast\n');
  expect(said).toContain('the machine was busy');
  expect(said.match(/FLAKY/g)).toHaveLength(1);
  expect(totals('flaky')).toEqual([0, '2 passed, 0 failed, 0 skipped\n']);
});

test('a test that fails again, a hook that does and a file that cannot be read refuse the run', async () => {
  await writeFile(
    join(directory, 'broken-test.test.js'),
    `test('breaks', () => expect(1).toBe(2));`,
  );
  await writeFile(
    join(directory, 'broken-hook.test.js'),
    `beforeAll(() => { throw new Error('no world'); }); test('waits', () => {});`,
  );
  await writeFile(join(directory, 'broken-file.test.js'), 'test(');
  const { first, second, said } = runTwice('broken');
  expect([first, second]).toEqual([1, 1]);
  expect(said).toMatch(/^Trying again, alone: (?:broken-\w+\.test\.js(?:, )?){3}$/m);
  expect(said).toContain('FAILED: broken-test.test.js: breaks\n');
  expect(said).not.toContain('FLAKY');
  // The test that waits for the hook that failed is left out.
  const leftOut = 'Left out: broken-hook.test.js: waits\n';
  const [status, written] = totals('broken');
  expect(status).toBe(1);
  expect(written).toMatch(new RegExp(`^${leftOut}[^]*\n0 passed, 1 failed, 1 skipped\n$`));
  expect(written).toContain('FAILED: broken-test.test.js: breaks\n');
  expect(written).toContain('no world');
});

test('of what is tried again only what fails again is told and counted as failed', async () => {
  const failsOnce = (name: string) => {
    const marker = JSON.stringify(join(directory, name));
    return `if (!existsSync(${marker})) { writeFileSync(${marker}, ''); throw new Error('busy'); }`;
  };
  const imports = `import { existsSync, writeFileSync } from 'node:fs';`;
  await writeFile(
    join(directory, 'mixed-tests.test.js'),
    `${imports}
     test('is slow', () => { ${failsOnce('slow')} });
     test('is wrong', () => expect(1).toBe(2));
     test('is fine', () => {});`,
  );
  await writeFile(
    join(directory, 'mixed-hook.test.js'),
    `${imports}
     beforeAll(() => { ${failsOnce('hook')} });
     test('waits', () => {});`,
  );
  const { first, second, said } = runTwice('mixed');
  expect([first, second]).toEqual([1, 1]);
  expect(said.match(/^(?:FLAKY|FAILED): .*$/gm)?.toSorted()).toEqual([
    'FAILED: mixed-tests.test.js: is wrong',
    'FLAKY: mixed-hook.test.js: (the file)',
    'FLAKY: mixed-tests.test.js: is slow',
  ]);
  const [status, written] = totals('mixed');
  expect(status).toBe(1);
  expect(written).toMatch(/\n3 passed, 1 failed, 0 skipped\n$/);
  expect(String(written).match(/^FAILED: .*$/gm)).toEqual([
    'FAILED: mixed-tests.test.js: is wrong',
  ]);
});

test('an error that nothing caught is tried again with the file that ran when it came', async () => {
  const marker = JSON.stringify(join(directory, 'thrown'));
  await writeFile(
    join(directory, 'uncaught.test.js'),
    `import { existsSync, writeFileSync } from 'node:fs';
     test('waits', async () => {
       if (!existsSync(${marker})) setTimeout(() => { throw new Error('a socket broke'); }, 1);
       writeFileSync(${marker}, '');
       await new Promise((resolve) => setTimeout(resolve, 20));
     });`,
  );
  const { first, second, said } = runTwice('uncaught');
  expect([first, second]).toEqual([1, 0]);
  expect(said).toContain('FLAKY: uncaught.test.js: (outside of its tests)\n');
  expect(said).toContain('a socket broke');
});

test('what failed is not tried again when more is wrong', () => {
  const files = Array.from({ length: maxFiles }, (_, index) => ({
    path: `${index}`,
    failures: [{ test: 't', error: 'e' }],
  }));
  const counts = { passed: 7, failed: maxFiles, skipped: 0 };
  const run: FailedRun = {
    counts,
    leftOut: [],
    files,
    unhandledErrors: [],
    isFinished: true,
  };
  expect(refusalOf(run)).toBeUndefined();
  expect(refusalOf({ ...run, files: [...files, ...files.slice(0, 1)] })).toMatch(/^9 test files/);
  expect(refusalOf({ ...run, files: [] })).toMatch(/no test did/);
  expect(refusalOf({ ...run, unhandledErrors: ['a worker crashed'] })).toMatch(/a worker crashed/);
  expect(refusalOf({ ...run, isFinished: false })).toMatch(/cut short/);
  const rerun = spawnSync(process.execPath, [script('rerun.ts'), join(directory, 'none')]);
  expect(rerun.status).toBe(1);
});
