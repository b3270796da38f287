import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { atEndOfTurn } from './turns.ts';

test('nothing is done before all that this turn has brought is dealt with', async () => {
  const events: string[] = [];
  atEndOfTurn((text) => void events.push(text), 'sent');
  process.nextTick(() => events.push('tick'));
  await Promise.resolve().then(() => events.push('job'));
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(events.toSorted()).toEqual(['job', 'tick']);
  await nextTurn();
  expect(events.at(-1)).toBe('sent');
});

test('all is done in the order it was asked for, also what is asked for meanwhile', async () => {
  const done: number[] = [];
  atEndOfTurn((number) => {
    done.push(number);
    atEndOfTurn((later) => void done.push(later), 3);
  }, 1);
  atEndOfTurn((number) => void done.push(number), 2);
  expect(done).toEqual([]);
  while (done.length < 3) await nextTurn();
  expect(done).toEqual([1, 2, 3]);
});

test('where many wait, they are not kept waiting for one another', () => {
  const done: number[] = [];
  for (let number = 0; number < 1_000; number += 1) {
    atEndOfTurn((one) => void done.push(one), number);
  }
  expect(done.length).toBeGreaterThan(900);
  expect(done).toEqual(done.toSorted((one, other) => one - other));
});

test('one that throws does not keep the others waiting', async () => {
  const done: string[] = [];
  const [failure] = await Promise.all([
    new Promise((resolve) => {
      process.setUncaughtExceptionCaptureCallback(resolve);
    }),
    (async () => {
      atEndOfTurn(() => {
        throw new Error('out of order');
      }, undefined);
      atEndOfTurn((text) => void done.push(text), 'sent');
      while (done.length === 0) await nextTurn();
    })(),
  ]).finally(() => process.setUncaughtExceptionCaptureCallback(null));
  expect(failure).toEqual(new Error('out of order'));
  expect(done).toEqual(['sent']);
});
