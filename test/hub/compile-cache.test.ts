import { execFile } from 'node:child_process';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { projectDirectory } from '../support/services.ts';

const run = promisify(execFile);
const maxBuffer = 2 ** 26;
const { NODE_COMPILE_CACHE: _, ...environment } = process.env;
const traced = { ...environment, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' };

test.each(['main.ts', 'singleuser-main.ts'])(
  '%s keeps what it compiled among its packages',
  async (file) => {
    const main = join(projectDirectory, 'src', file);
    const { stdout, stderr } = await run(process.execPath, [main, '--help'], {
      env: traced,
      maxBuffer,
    });
    expect(`${stdout}${stderr}`).toContain(join(projectDirectory, 'node_modules', '.cache', 'hub'));
  },
);

test('a cache that was chosen from outside is left alone', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'hub-test-'));
  const main = join(projectDirectory, 'src', 'main.ts');
  const env = { ...traced, NODE_COMPILE_CACHE: folder.path };
  const { stdout, stderr } = await run(process.execPath, [main, '--version'], { env, maxBuffer });
  expect(`${stdout}${stderr}`).toContain(folder.path);
  expect(`${stdout}${stderr}`).not.toContain(join('node_modules', '.cache', 'hub'));
});

test('a hub that restarts itself finds even its first file compiled', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'hub-test-'));
  const main = join(projectDirectory, 'src', 'main.ts');
  const { stdout, stderr } = await run(
    process.execPath,
    [main, 'start', '--config', join(folder.path, 'missing.json')],
    { env: traced, maxBuffer },
  ).catch((failed: { readonly stdout: string; readonly stderr: string }) => failed);
  // Only where the cache is there before the program begins.
  expect(`${stdout}${stderr}`).toContain(`for StrippedTypeScript ${pathToFileURL(main).href}`);
});
