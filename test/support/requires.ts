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
}

/** One line of the file that HUB_TEST_NEEDS names: what a test file asked for, and whether that is there. */
export interface TestNeed {
  readonly file: string;
  readonly name: ProgramName;
  readonly isThere: boolean;
}

export const optionalPrograms: Readonly<Record<ProgramName, Program>> = programs;

/** Paths of programs that were tried, undefined where one does not run. */
const tried = new Map<ProgramName, string | undefined>();

/** Set for each test file, and only in its process; see test/support/each-file.ts. */
let current: { readonly file: string; readonly asked: Set<ProgramName> } | undefined;

/** Begins a test file: what earlier ones in this process asked for does not count for it. */
export function beginTestFile(file: string): void {
  current = { file, asked: new Set() };
}

/**
 * Whether all of these run here, for `describe.skipIf(!requires('caddy'))` and `test.skipIf`. Every test
 * that starts one of them asks, directly or by its world in test/support. In continuous integration
 * (`CI=true`) a missing one is an error, so that no test is left out unnoticed.
 */
export function requires(...names: readonly ProgramName[]): boolean {
  const missing = names.filter((name) => {
    const isThere = find(name) !== undefined;
    note(name, isThere);
    return !isThere;
  });
  if (missing.length > 0 && env['CI']) {
    throw new Error(`The tests need what does not run here: ${missing.map(remedyOf).join(', ')}`);
  }
  return missing.length === 0;
}

/** Path of a program that the test file has asked for with `requires`. */
export function pathOf(name: ProgramName): string {
  if (current !== undefined && !current.asked.has(name)) {
    throw new Error(`${current.file} starts ${name} without asking: requires('${name}')`);
  }
  const path = find(name);
  if (path === undefined) throw new Error(`This does not run here: ${remedyOf(name)}`);
  return path;
}

/** Its name and, where one helps, the package of Debian. */
export function remedyOf(name: ProgramName): string {
  const { package: packages } = optionalPrograms[name];
  return packages === undefined ? name : `${name} (apt-get install ${packages})`;
}

function note(name: ProgramName, isThere: boolean): void {
  if (current === undefined || current.asked.has(name)) return;
  current.asked.add(name);
  const need: TestNeed = { file: current.file, name, isThere };
  const { HUB_TEST_NEEDS: file } = env;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(need)}\n`);
}

function find(name: ProgramName): string | undefined {
  if (!tried.has(name)) tried.set(name, tryToRun(optionalPrograms[name]));
  return tried.get(name);
}

function tryToRun({ program, args }: Program): string | undefined {
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
