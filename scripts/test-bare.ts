/**
 * Runs the tests as on a machine that has Node.js, npm and Git and none of the programs that
 * test/support/programs.json lists: these are taken away in a mount namespace, which nothing outside of it
 * sees. Needs root on Linux. Arguments go to Vitest; `--again FILE` instead runs the test files that failed once
 * more, by the file that the reporter in failed-tests wrote.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { optionalPrograms, type Program, tryToRun } from '../test/support/requires.ts';

/** What is below it is covered by a layer that takes deletions. */
const covered = '/usr';

/** Set in the namespace: a folder for the layer. */
const layerVariable = 'HUB_BARE_LAYER';

const { CI: _, [layerVariable]: layer, ...env } = process.env;
process.exitCode = layer === undefined ? inNamespace() : testWithout(layer);

function inNamespace(): number {
  const directory = mkdtempSync(join(tmpdir(), 'hub-bare-'));
  const node = [process.execPath, import.meta.filename, ...process.argv.slice(2)];
  const { status } = spawnSync('unshare', ['--mount', ...node], {
    env: { ...env, [layerVariable]: directory },
    stdio: 'inherit',
  });
  rmSync(directory, { recursive: true });
  return status ?? 1;
}

function testWithout(directory: string): number {
  mount('tmpfs', directory, []);
  const folders = ['upper', 'work'].map((name) => join(directory, name));
  run('mkdir', folders);
  const [upper, work] = folders;
  mount('overlay', covered, ['-o', `lowerdir=${covered},upperdir=${upper},workdir=${work}`]);
  const hidden = Object.entries(optionalPrograms).filter(([, program]) => hide(program));
  console.log(`Without ${hidden.map(([name]) => name).join(', ')}`);
  const vitest = join(
    dirname(createRequire(import.meta.url).resolve('vitest/package.json')),
    'vitest.mjs',
  );
  const given = process.argv.slice(2);
  const again = join(import.meta.dirname, 'failed-tests', 'rerun.ts');
  const args = given[0] === '--again' ? [again, ...given.slice(1)] : [vitest, 'run', ...given];
  return spawnSync(process.execPath, args, { env, stdio: 'inherit' }).status ?? 1;
}

/** Whether there is something to take away: a right such as root's is no program. */
function hide(program: Program): boolean {
  if (program.package === undefined) return false;
  const { stdout } = spawnSync('dpkg', ['--listfiles', ...program.package.split(' ')], {
    encoding: 'utf8',
  });
  for (const file of (stdout ?? '').split('\n')) remove(file);
  // It may be of another package, or of none.
  for (let path = tryToRun(program); path !== undefined; path = tryToRun(program)) {
    if (!remove(path)) throw new Error(`${path} cannot be taken away: it is not below ${covered}`);
  }
  return true;
}

function remove(file: string): boolean {
  const place = statSync(file, { throwIfNoEntry: false })?.isFile() ? inItsFolder(file) : '';
  if (!place.startsWith(`${covered}/`)) return false;
  rmSync(place);
  return true;
}

/** Where a file or a link to one is, beyond links of its folders. */
function inItsFolder(file: string): string {
  return join(realpathSync(dirname(file)), file.slice(dirname(file).length));
}

function mount(type: string, place: string, options: readonly string[]): void {
  run('mount', ['-t', type, ...options, type, place]);
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${stderr}`);
}
