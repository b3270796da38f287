import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { execPath, pid } from 'node:process';
import { expect, test } from 'vitest';
import { identifyProcess, isSameProcess } from './process-identity.ts';

test('a process is the same as long as it runs, and not after', async () => {
  const child = spawn(execPath, ['-e', 'setInterval(() => {}, 60000)']);
  const identity = identifyProcess(child.pid ?? 0);
  expect(identity).toBeDefined();
  if (identity === undefined) return;
  expect(isSameProcess(identity)).toBe(true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isSameProcess(identity)).toBe(false);
  expect(identifyProcess(identity.pid)).toBeUndefined();
});

test('another process that got the same pid is not the same process', () => {
  const mine = identifyProcess(pid);
  expect(mine).toBeDefined();
  expect(isSameProcess({ pid, startTime: `${mine?.startTime}0` })).toBe(false);
});
