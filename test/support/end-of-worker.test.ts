import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'vitest';
import { readProcess } from '../../src/platform/process-table/process-table.ts';
import { until } from './test-hub.ts';

const worker = `
  import { spawn } from 'node:child_process';
  import ${JSON.stringify(import.meta.resolve('./end-of-worker.ts'))};
  const { pid } = spawn('sleep', ['600'], { stdio: 'ignore', detached: true });
  process.send(pid);
`;

test.each([
  ['is ended', 'kill'],
  ['is left alone', 'disconnect'],
] as const)('a worker that %s ends what its tests have left running', async (_, how) => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', worker], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [pid] = (await once(child, 'message')) as [number];
  child[how]();
  await once(child, 'exit');
  await until(() => readProcess(pid)?.isZombie !== false, 'the program has ended');
});
