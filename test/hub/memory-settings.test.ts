import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createHubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { until } from '../support/test-hub.ts';

function optionsOf(pid: number): string[] {
  const [, ...given] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return given.slice(
    0,
    given.findIndex((argument) => argument.endsWith('main.ts')),
  );
}

test('a hub runs with a small part of its memory for young objects, under the pid it was started with', async () => {
  await using folder = await createHubFolder();
  const hub = await folder.start();
  expect(optionsOf(hub.pid)).toContain('--max-semi-space-size=16');
  expect(readFileSync(`/proc/${hub.pid}/environ`, 'utf8')).toContain('MALLOC_ARENA_MAX=2\0');
});

test('what an operator chose for it stays', async () => {
  await using folder = await createHubFolder();
  await using hub = spawnHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    env: { NODE_OPTIONS: '--max-semi-space-size=32' },
  });
  await until(() => hub.stdout().includes('ready'), 'the hub is ready');
  expect(optionsOf(hub.pid)).toEqual([]);
});
