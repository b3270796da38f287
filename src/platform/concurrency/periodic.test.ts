import { expect, test } from 'vitest';
import { createPeriodic } from './periodic.ts';

const intervalMs = 5;
const unexpected = (error: unknown) => {
  throw error;
};

async function until(isTrue: () => boolean): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error('it did not happen');
    await new Promise(setImmediate);
  }
}

test('is done again and again until it is disposed of', async () => {
  let runs = 0;
  const periodic = createPeriodic({
    intervalMs,
    work: () => {
      runs += 1;
    },
    onError: unexpected,
  });
  await until(() => runs >= 3);
  periodic[Symbol.dispose]();
  const runsAtEnd = runs;
  const later = Promise.withResolvers<void>();
  setTimeout(later.resolve, intervalMs * 5);
  await later.promise;
  expect(runs).toBe(runsAtEnd);
});

test('does not begin while it is under way, and its end is waited for', async () => {
  let begun = 0;
  let ended = 0;
  const gate = Promise.withResolvers<void>();
  const periodic = createPeriodic({
    intervalMs: 1,
    async work() {
      begun += 1;
      await gate.promise;
      ended += 1;
    },
    onError: unexpected,
  });
  const first = periodic.run();
  expect(periodic.run()).toBe(first);
  await until(() => begun === 1);
  const disposed = periodic[Symbol.asyncDispose]();
  gate.resolve();
  await disposed;
  expect([begun, ended]).toEqual([1, 1]);
});

test('tells of a failure, of work with a wait and without, and goes on', async () => {
  const errors: unknown[] = [];
  let runs = 0;
  await using _periodic = createPeriodic({
    intervalMs,
    work() {
      runs += 1;
      if (runs === 1) throw new Error('at once');
      return runs === 2 ? Promise.reject(new Error('later')) : undefined;
    },
    onError: (error) => errors.push(error),
  });
  await until(() => runs >= 3);
  expect(errors).toEqual([new Error('at once'), new Error('later')]);
});

test('a run asked for is done at once, and again when asked again', async () => {
  let runs = 0;
  await using periodic = createPeriodic({
    intervalMs: 3_600_000,
    work: () => {
      runs += 1;
    },
    onError: unexpected,
  });
  await periodic.run();
  await periodic.run();
  expect(runs).toBe(2);
});
