import { expect, test } from 'vitest';
import { createFailureLimit } from './failure-limit.ts';

test('allows so many failures in a window, and again after it', () => {
  let time = 0;
  const failures = createFailureLimit({ limit: 2, windowMs: 10_000, now: () => time });
  failures.recordFailure('a');
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
  time = 4000;
  failures.recordFailure('a');
  expect(failures.retryAfterSeconds('a')).toBe(6);
  expect(failures.retryAfterSeconds('b')).toBeUndefined();
  time = 10_000;
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
});

test('keeps a bounded number of keys, the latest ones', () => {
  const failures = createFailureLimit({ limit: 1, maxKeys: 2 });
  for (const key of ['a', 'b', 'c']) failures.recordFailure(key);
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
  expect(failures.retryAfterSeconds('c')).toBeGreaterThan(0);
});
