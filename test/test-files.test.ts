import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { optionalPrograms } from './support/requires.ts';

const root = join(import.meta.dirname, '..');

interface TestFile {
  readonly path: string;
  readonly text: string;
}

function testFiles(): TestFile[] {
  return globSync(['{src,plugins,test}/**/*.test.ts', 'test/{support,attacks,contract}/**/*.ts'], {
    cwd: root,
    // It has examples.
    exclude: ['test/test-files.test.ts'],
  }).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

/** Names that a shell finds optional programs by; what finds a library or a right is on every machine. */
const programNames = Object.values(optionalPrograms)
  .filter(({ package: packages }) => packages !== undefined)
  .flatMap(({ program }) => program.split(' ').map((path) => basename(path)))
  .filter((name) => name !== 'env');
const started = new RegExp(
  `\\b(?:spawn|spawnSync|exec|execFile|execFileSync|execSync|promisify\\(execFile\\))\\)?\\(\\s*['"\`](?:/[\\w./-]+/)?(${programNames.join('|')})['"\`]`,
  'g',
);
const atItsPath = new RegExp(`['"\`]/usr/s?bin/(${programNames.join('|')})['"\`]`, 'g');

/** Runs that are started by name, where only `pathOf()` knows whether the test has asked for them. */
function startProblems({ path, text }: TestFile): string[] {
  return [...text.matchAll(started), ...text.matchAll(atItsPath)].map(
    ([, name]) => `${path} starts ${name} by its name: pathOf('${name}')`,
  );
}

/** What depends on how fast the machine is; bench/ measures, and a deadline of `until()` ends a hang. */
function clockProblems({ path, text }: TestFile): string[] {
  const clock = /performance\.now\(\)|hrtime|\b\w+Ms\b|\bms\b/;
  const asserted = [...text.matchAll(/expect\((.*?)\)\s*\.toBeLessThan/g)]
    .map(([, measured = '']) => measured)
    .filter((measured) => clock.test(measured) && !measured.includes('\n'));
  return [
    ...asserted.map((measured) => `${path} asserts that ${measured} is short`),
    ...(/\bcpuUsage\(|\bresourceUsage\(/.test(text) ? [`${path} measures the processor`] : []),
  ];
}

test('a program that not every machine has is started by way of pathOf(), which wants requires()', () => {
  expect(testFiles().flatMap(startProblems)).toEqual([]);
  const problemsOf = (text: string) => startProblems({ path: 'a.test.ts', text });
  expect(problemsOf("const child = spawn('promtool', args);")).toHaveLength(1);
  expect(problemsOf("promisify(execFile)(\n  'curl',")).toHaveLength(1);
  expect(problemsOf("const program = '/usr/sbin/nginx';")).toHaveLength(1);
  expect(problemsOf("spawn(pathOf('promtool'), args); spawn('sh', ['-c', 'true']);")).toEqual([]);
});

test('nothing is asserted of how long it took, or of the processor', () => {
  expect(testFiles().flatMap(clockProblems)).toEqual([]);
  const problemsOf = (text: string) => clockProblems({ path: 'a.test.ts', text });
  expect(problemsOf('expect(performance.now() - since).toBeLessThan(5_000);')).toHaveLength(1);
  expect(problemsOf('expect(closedAfterMs).toBeLessThanOrEqual(limit);')).toHaveLength(1);
  expect(problemsOf('const { user } = process.cpuUsage(before);')).toHaveLength(1);
  expect(problemsOf('expect(lines.length).toBeLessThan(10);')).toEqual([]);
});
