import { hash } from 'node:crypto';
import { existsSync, globSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { bundleProgram, programSources } from '../../scripts/program.ts';

const root = join(import.meta.dirname, '..', '..');
/** Among the packages, where those that are not in the bundle are found. */
const cache = join(root, 'node_modules', '.cache', 'program');
const idleLimitMs = 24 * 60 * 60 * 1000;

/** For all test files of a run: the hub as it is published, which starts sooner than from its sources. */
export async function setup(): Promise<void> {
  const folder = join(cache, sourcesDigest());
  if (!existsSync(folder)) {
    removeOld();
    const unfinished = `${folder}-${process.pid}`;
    await bundleProgram(unfinished);
    try {
      renameSync(unfinished, folder);
    } catch {
      // Another run was quicker.
      rmSync(unfinished, { recursive: true, force: true });
    }
  }
  env['HUB_TEST_PROGRAM'] = folder;
}

function sourcesDigest(): string {
  const files = globSync(programSources, { cwd: root, exclude: ['**/*.test.ts'] }).toSorted();
  const contents = files
    .filter((file) => statSync(join(root, file)).isFile())
    .map((file) => `${file} ${hash('sha256', readFileSync(join(root, file)))}`);
  return hash('sha256', contents.join('\n')).slice(0, 16);
}

function removeOld(): void {
  for (const name of globSync('*', { cwd: cache })) {
    const folder = join(cache, name);
    const { mtimeMs } = statSync(folder);
    if (Date.now() - mtimeMs > idleLimitMs) rmSync(folder, { recursive: true, force: true });
  }
}
