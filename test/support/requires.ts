import { spawnSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { env } from 'node:process';
import programs from './programs.json' with { type: 'json' };

/** A program, or a right, that tests need and not every machine has: a key of programs.json. */
export type ProgramName = keyof typeof programs;

/** An entry of programs.json, which `.ci/run` reads too. */
export interface Program {
  /** Its names or paths, of which the first that runs is taken. */
  readonly program: string;
  /** With which it ends at once, and successfully, where it works: words of a shell. */
  readonly args: string;
  /** What to install with apt-get; nothing where no package helps. */
  readonly package?: string;
  /** The same of what only `npm run test:foreign` starts, which the pipeline goes without. */
  readonly scanner?: string;
}

/** One line of the file that HUB_TEST_NEEDS names: what a test file asked for, and whether that is there. */
export interface TestNeed {
  /** Relative to the project. */
  readonly file: string;
  readonly need: string;
  readonly isThere: boolean;
}

export const optionalPrograms: Readonly<Record<ProgramName, Program>> = programs;

/** Paths of programs that were tried, undefined where one does not run. */
const tried = new Map<ProgramName, string | undefined>();

/** Set for each test file, and only in its process; see test/support/each-file.ts. */
let current: { readonly file: string; readonly needs: Set<string> } | undefined;

/** Begins a test file: what earlier ones in this process asked for does not count for it. */
export function beginTestFile(file: string): void {
  current = { file, needs: new Set() };
}

/**
 * Whether all of these run here, for `describe.skipIf(!requires('caddy'))` and `test.skipIf`. Every test
 * that starts one of them asks, directly or by its world in test/support. In continuous integration
 * (`CI=true`) a missing one is an error, so that no test is left out unnoticed.
 */
export function requires(...names: readonly ProgramName[]): boolean {
  const missing = names.filter((name) => !offers(needOf(name), find(name) !== undefined));
  if (missing.length > 0 && env['CI']) {
    throw new Error(`The tests need what does not run here: ${missing.map(needOf).join(', ')}`);
  }
  return missing.length === 0;
}

/** Whether this machine offers something that is no program, such as cgroups; noted for the end of the run. */
export function offers(need: string, isThere: boolean): boolean {
  if (current === undefined || current.needs.has(need)) return isThere;
  current.needs.add(need);
  const line: TestNeed = { file: current.file, need, isThere };
  const { HUB_TEST_NEEDS: file } = env;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`);
  return isThere;
}

/** Path of a program that the test file has asked for with `requires`. */
export function pathOf(name: ProgramName): string {
  if (current !== undefined && !current.needs.has(needOf(name))) {
    throw new Error(`${current.file} starts ${name} without asking: requires('${name}')`);
  }
  const path = find(name);
  if (path === undefined) throw new Error(`This does not run here: ${needOf(name)}`);
  return path;
}

/** Path of a program that runs with these arguments; undefined where none does. */
export function tryToRun({ program, args }: Program): string | undefined {
  const attempts = program
    .split(' ')
    .map((word) => `if ${word} ${args}; then command -v ${word} >&3; exit; fi`);
  const { stdout } = spawnSync('sh', ['-c', ['exec 3>&1 >/dev/null', ...attempts].join('\n')], {
    // Those of daemons are where only root has them on its path.
    env: { ...env, PATH: `${env['PATH'] ?? ''}:/usr/sbin:/sbin` },
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
  });
  return stdout.trim() || undefined;
}

/** Its name and, where one helps, the package of Debian. */
function needOf(name: ProgramName): string {
  const { scanner, package: packages = scanner } = optionalPrograms[name];
  return packages === undefined ? name : `${name} (apt-get install ${packages})`;
}

function find(name: ProgramName): string | undefined {
  if (!tried.has(name)) tried.set(name, tryToRun(optionalPrograms[name]));
  return tried.get(name);
}
