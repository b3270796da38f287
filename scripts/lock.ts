import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LockFile, lockFileProblems, withoutEngines } from './lock-file.ts';

// Makes package-lock.json from package.json alone, in an empty folder: what is installed here, or was
// locked before, would decide along.
const root = join(import.meta.dirname, '..');
const directory = mkdtempSync(join(tmpdir(), 'hub-lock-'));
try {
  for (const name of ['package.json', '.npmrc'])
    copyFileSync(join(root, name), join(directory, name));
  // Every package must take the Node.js that `npm run` puts first on the path, the one that is locked here.
  const options = ['--package-lock-only', '--ignore-scripts', '--engine-strict'];
  const { status } = spawnSync('npm', ['install', ...options], {
    cwd: directory,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error('npm could not resolve the packages');
  const made = join(directory, 'package-lock.json');
  const lock = withoutEngines(JSON.parse(readFileSync(made, 'utf8')) as LockFile);
  const problems = lockFileProblems(lock);
  if (problems.length > 0) {
    throw new Error(
      `package-lock.json was not written; pin versions of which the registry has every package:\n${problems.join('\n')}`,
    );
  }
  writeFileSync(join(root, 'package-lock.json'), `${JSON.stringify(lock, undefined, 2)}\n`);
} finally {
  rmSync(directory, { recursive: true, force: true });
}
