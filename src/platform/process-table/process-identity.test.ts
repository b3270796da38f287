import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { execPath, pid } from 'node:process';
import { expect, test } from 'vitest';
import { identifyProcess, isProcessGone, isSameProcess } from './process-table.ts';

test('a process is the same as long as it runs, and not after', async () => {
  const child = spawn(execPath, ['-e', 'setInterval(() => {}, 60000)']);
  const identity = identifyProcess(child.pid ?? 0);
  expect(identity).toBeDefined();
  if (identity === undefined) return;
  expect(isSameProcess(identity)).toBe(true);
  expect(isProcessGone(identity)).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isSameProcess(identity)).toBe(false);
  expect(identifyProcess(identity.pid)).toBeUndefined();
  expect(isProcessGone(identity)).toBe(true);
});

test('another process that got the same pid is not the same process', () => {
  const mine = identifyProcess(pid);
  expect(mine).toBeDefined();
  const former = { pid, startTime: `${mine?.startTime}0` };
  expect(isSameProcess(former)).toBe(false);
  expect(isProcessGone(former)).toBe(true);
});
