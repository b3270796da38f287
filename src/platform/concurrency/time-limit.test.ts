import { once } from 'node:events';
import { expect, test } from 'vitest';
import { timeLimit } from './time-limit.ts';

test('a limit of a part of a millisecond is one', async () => {
  const signal = timeLimit(1.5);
  if (!signal.aborted) await once(signal, 'abort');
  expect(signal.reason).toMatchObject({ name: 'TimeoutError' });
});

test('a limit longer than a timer can count does not end at once', async () => {
  const signal = timeLimit(Number.MAX_SAFE_INTEGER);
  await once(timeLimit(5), 'abort');
  expect(signal.aborted).toBe(false);
});
