import { expect, test } from 'vitest';
import { memorySpace } from '../../../../test/support/memory-space.ts';
import { createFailureLimit, type FailureLimit, type FailureWindow } from './failure-limit.ts';

const counts = () => memorySpace<FailureWindow>();

/** Makes an attempt; resolves to the seconds to wait where it was not made. */
const attempt = (failures: FailureLimit, key: string, result: true | undefined) =>
  failures
    .attempt(
      key,
      async () => result,
      (seconds) => Object.assign(new Error('too many'), { seconds }),
    )
    .then(
      () => undefined,
      (error: { readonly seconds: number }) => error.seconds,
    );
const fail = (failures: FailureLimit, key: string) => attempt(failures, key, undefined);
const waitSeconds = (failures: FailureLimit, key: string) => attempt(failures, key, true);

test('allows so many failures in a window, and again after it', async () => {
  let time = 0;
  const failures = createFailureLimit({
    counts: counts(),
    limit: 2,
    windowMs: 10_000,
    now: () => time,
  });
  await fail(failures, 'a');
  expect(await waitSeconds(failures, 'a')).toBeUndefined();
  time = 4000;
  await fail(failures, 'a');
  expect(await waitSeconds(failures, 'a')).toBe(6);
  expect(await waitSeconds(failures, 'b')).toBeUndefined();
  time = 10_000;
  expect(await waitSeconds(failures, 'a')).toBeUndefined();
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
  await Promise.all([fail(here!, 'a'), fail(here!, 'a')]);
  expect(await waitSeconds(there!, 'a')).toBeUndefined();
  expect(updates).toBe(2);
  await fail(there!, 'a');
  expect(await waitSeconds(there!, 'a')).toBe(60);
});

test('makes no more attempts at once than may fail, and lets those that succeed through', async () => {
  const failures = createFailureLimit({ counts: counts(), limit: 3, now: () => 0 });
  let made = 0;
  const many = (result: true | undefined) =>
    Promise.allSettled(
      Array.from({ length: 20 }, () =>
        failures.attempt(
          'a',
          async () => {
            made += 1;
            return result;
          },
          () => new Error('too many'),
        ),
      ),
    );
  await many(true);
  expect(made).toBe(20);
  const outcomes = await many(undefined);
  expect(made).toBe(23);
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(17);
});

test('counts on where the clocks of two processes differ by a little', async () => {
  const shared = counts();
  const here = createFailureLimit({ counts: shared, limit: 3, now: () => 500 });
  const there = createFailureLimit({ counts: shared, limit: 3, now: () => 0 });
  await fail(here, 'a');
  await fail(there, 'a');
  await fail(there, 'a');
  expect(await waitSeconds(there, 'a')).toBe(61);
});

test('a clock that was set back locks no one out for longer than a window', async () => {
  let time = 10_000_000;
  const failures = createFailureLimit({ counts: counts(), limit: 1, now: () => time });
  await fail(failures, 'a');
  expect(await waitSeconds(failures, 'a')).toBe(60);
  time = 0;
  expect(await waitSeconds(failures, 'a')).toBeUndefined();
});

test('keeps a bounded number of keys, the latest ones', async () => {
  const failures = createFailureLimit({ counts: counts(), limit: 1, maxKeys: 2, now: () => 0 });
  for (const key of ['a', 'b', 'c']) await fail(failures, key);
  expect(await waitSeconds(failures, 'a')).toBeUndefined();
  expect(await waitSeconds(failures, 'c')).toBeGreaterThan(0);
});
