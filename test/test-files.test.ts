import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { leftOutLines } from './support/left-out.ts';
import { optionalPrograms } from './support/requires.ts';
import { worldFiles } from './support/world-files.ts';

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
/** In a line for a shell: behind what ends the command before it, or `exec`. */
const startedByShell = new RegExp(
  `['"\`](?:[^'"\`\\n]*[(;|&] *|[^'"\`\\n]*\\bexec )(${programNames.join('|')}) [\\w$"'-]`,
  'g',
);
/** Any of the system's, whether it is listed yet or not. */
const atItsPath = /['"`]\/usr\/s?bin\/([\w.-]+)['"`]/g;

/** Runs that are started by name, where only `pathOf()` knows whether the test has asked for them. */
function startProblems({ path, text }: TestFile): string[] {
  const patterns = [started, startedByShell, atItsPath];
  return patterns
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map(([, name]) => `${path} starts ${name} by its name: pathOf('${name}')`);
}

/** What depends on how fast the machine is; bench/ measures, and a deadline of `until()` ends a hang. */
function clockProblems({ path, text }: TestFile): string[] {
  const clock = /performance\.now\(\)|\bDate\.now\(\)|hrtime|\b\w+Ms\b|\bms\b/;
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
  expect(problemsOf(`const left = '(setsid sh -c "sleep 600" &); exec "$@"';`)).toHaveLength(1);
  expect(problemsOf("execFileSync('/usr/bin/new-program', args);")).toHaveLength(1);
  expect(problemsOf("spawn(pathOf('promtool'), args); spawn('sh', ['-c', 'true']);")).toEqual([]);
});

test('each optional program is one that tests ask for', () => {
  const texts = testFiles().map(({ text }) => text);
  const unused = Object.keys(optionalPrograms).filter(
    (name) => !texts.some((text) => text.includes(`'${name}'`)),
  );
  expect(unused).toEqual([]);
});

test('nothing is asserted of how long it took, or of the processor', () => {
  expect(testFiles().flatMap(clockProblems)).toEqual([]);
  const problemsOf = (text: string) => clockProblems({ path: 'a.test.ts', text });
  expect(problemsOf('expect(performance.now() - since).toBeLessThan(5_000);')).toHaveLength(1);
  expect(problemsOf('expect(Math.abs(Date.now() - at)).toBeLessThan(60_000);')).toHaveLength(1);
  expect(problemsOf('expect(closedAfterMs).toBeLessThanOrEqual(limit);')).toHaveLength(1);
  expect(problemsOf('const { user } = process.cpuUsage(before);')).toHaveLength(1);
  expect(problemsOf('expect(lines.length).toBeLessThan(10);')).toEqual([]);
});

test('the pipeline installs the package of each program that does not run', () => {
  const directory = mkdtempSync(join(tmpdir(), 'hub-programs-'));
  try {
    const file = join(directory, 'programs.json');
    const text = readFileSync(join(root, 'test/support/programs.json'), 'utf8');
    writeFileSync(file, text.replaceAll(/"program": "[^"]*"/g, '"program": "no-such-program"'));
    const missing = () =>
      spawnSync(join(root, 'scripts', 'missing-packages'), [file], { encoding: 'utf8' })
        .stdout.split('\n')
        .filter((line) => line !== '');
    const packages = Object.values(optionalPrograms).flatMap((program) =>
      (program.package ?? '').split(' ').filter((name) => name !== ''),
    );
    expect(missing()).toEqual(packages);
    writeFileSync(file, '{ "a": { "program": "none sh", "args": "-c true", "package": "x" } }');
    expect(missing()).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test('the end of a run says once what was left out, and for lack of what', () => {
  const leftOut = new Map([
    ['a.test.ts', 2],
    ['b.test.ts', 1],
    ['c.test.ts', 0],
    ['d.test.ts', 3],
  ]);
  const need = (file: string, name: string, isThere = false) => ({ file, need: name, isThere });
  const needs = [
    need('a.test.ts', 'caddy'),
    need('a.test.ts', 'caddy'),
    need('a.test.ts', 'root', true),
    need('b.test.ts', 'caddy'),
    need('b.test.ts', 'nginx'),
    need('c.test.ts', 'nginx'),
  ];
  expect(leftOutLines(leftOut, needs)).toEqual([
    '6 tests were left out:',
    '  by choice: d.test.ts (3)',
    '  without caddy: a.test.ts (2), b.test.ts (1)',
    '  without nginx: b.test.ts (1)',
  ]);
  expect(leftOutLines(new Map([['c.test.ts', 0]]), needs)).toEqual([]);
});

test('what starts an engine, or whole hubs with other programs around them, is in the world', () => {
  const world = worldFiles();
  expect(world).toContain('test/hub/docker-servers.test.ts');
  expect(world).toContain('src/spawning/slurm/slurm-contract.test.ts');
  expect(world).toContain('test/hub/database-faults.test.ts');
  expect(world).not.toContain('test/hub/servers-access.test.ts');
  expect(world).not.toContain('src/platform/store/migrate.test.ts');
});
