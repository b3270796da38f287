import { spawnSync } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

/** Committed files that `.gitignore` wants kept out, and those with a merge that was not finished. */
function leftovers(directory: string): string[] {
  const ignored = git(directory, 'ls-files', '--cached', '--ignored', '--exclude-standard');
  const unmerged = git(directory, 'grep', '--cached', '-lE', '^(<{7}|>{7}|\\|{7}) ');
  return [...ignored, ...unmerged].toSorted();
}

function git(directory: string, ...args: string[]): string[] {
  // A clone may belong to another account than the one that runs the tests.
  const run = spawnSync('git', ['-c', 'safe.directory=*', ...args], {
    cwd: directory,
    encoding: 'utf8',
  });
  // `git grep` exits with 1 when it finds nothing.
  if (run.error || (run.status !== 0 && run.stderr !== ''))
    throw run.error ?? new Error(run.stderr);
  return run.stdout.split('\n').filter((line) => line !== '');
}

test('nothing that a profiler, a crash, a build or a merge left behind is committed', () => {
  expect(leftovers(root)).toEqual([]);
});

test('what is left behind is found', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'hub-tree-'));
  try {
    git(directory, 'init', '--quiet');
    await copyFile(join(root, '.gitignore'), join(directory, '.gitignore'));
    const left = [
      'isolate-0x2a3b4c-1234-v8.log',
      'CPU.20260101.120000.1.0.001.cpuprofile',
      'Heap.20260101.heapsnapshot',
      'core.4711',
      'hub.ts.orig',
      'hub.ts.rej',
      'hub.sqlite-wal',
    ];
    for (const name of [...left, 'core.ts', 'isolate.md'])
      await writeFile(join(directory, name), 'x');
    await writeFile(join(directory, 'merged.ts'), `a\n${'<'.repeat(7)} HEAD\nb\n`);
    git(directory, 'add', '--force', '.');
    expect(leftovers(directory)).toEqual([...left, 'merged.ts'].toSorted());
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
