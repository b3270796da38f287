import { expect, test } from 'vitest';
import { memorySpace } from '../../../../test/support/memory-space.ts';
import { createFailureLimit, type FailureWindow } from './failure-limit.ts';

const counts = () => memorySpace<FailureWindow>();

test('allows so many failures in a window, and again after it', async () => {
  let time = 0;
  const failures = createFailureLimit({
    counts: counts(),
    limit: 2,
    windowMs: 10_000,
    now: () => time,
  });
  await failures.recordFailure('a');
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
  time = 4000;
  await failures.recordFailure('a');
  expect(failures.retryAfterSeconds('a')).toBe(6);
  expect(failures.retryAfterSeconds('b')).toBeUndefined();
  time = 10_000;
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
});

test('counts the failures of all processes, and asks for them with a failure only', async () => {
  const shared = counts();
  let updates = 0;
  const counting = {
    ...shared,
    update: (...args: Parameters<typeof shared.update>) => {
      updates += 1;
      return shared.update(...args);
    },
  };
  const now = () => 0;
  const [here, there] = [counting, counting].map((each) =>
    createFailureLimit({ counts: each, limit: 3, now }),
  );
  await Promise.all([here!.recordFailure('a'), here!.recordFailure('a')]);
  expect(there!.retryAfterSeconds('a')).toBeUndefined();
  expect(updates).toBe(2);
  await there!.recordFailure('a');
  expect(there!.retryAfterSeconds('a')).toBe(60);
});

test('counts on where the clocks of two processes differ by a little', async () => {
  const shared = counts();
  const here = createFailureLimit({ counts: shared, limit: 3, now: () => 500 });
  const there = createFailureLimit({ counts: shared, limit: 3, now: () => 0 });
  await here.recordFailure('a');
  await there.recordFailure('a');
  await there.recordFailure('a');
  expect(there.retryAfterSeconds('a')).toBe(61);
});

test('a clock that was set back locks no one out for longer than a window', async () => {
  let time = 10_000_000;
  const failures = createFailureLimit({ counts: counts(), limit: 1, now: () => time });
  await failures.recordFailure('a');
  expect(failures.retryAfterSeconds('a')).toBe(60);
  time = 0;
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
});

test('keeps a bounded number of keys, the latest ones', async () => {
  const failures = createFailureLimit({ counts: counts(), limit: 1, maxKeys: 2, now: () => 0 });
  for (const key of ['a', 'b', 'c']) await failures.recordFailure(key);
  expect(failures.retryAfterSeconds('a')).toBeUndefined();
  expect(failures.retryAfterSeconds('c')).toBeGreaterThan(0);
});
