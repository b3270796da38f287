import { expect, test } from 'vitest';
import { createLimiter } from './limiter.ts';

test('no more run at once than the limit, in order, also after one that fails', async () => {
  const limiter = createLimiter(2);
  let inside = 0;
  let max = 0;
  const order: number[] = [];
  const work = (number: number) => async () => {
    inside += 1;
    max = Math.max(max, inside);
    order.push(number);
    await new Promise(setImmediate);
    inside -= 1;
    if (number === 1) throw new Error('one fails');
    return number;
  };
  const done = await Promise.allSettled([0, 1, 2, 3, 4].map((number) => limiter(work(number))));
  expect(done.map(({ status }) => status)).toEqual([
    'fulfilled',
    'rejected',
    'fulfilled',
    'fulfilled',
    'fulfilled',
  ]);
  expect(max).toBe(2);
  expect(order).toEqual([0, 1, 2, 3, 4]);
});

test('who gives up waiting leaves the line, and its work is never done', async () => {
  const limiter = createLimiter(1);
  const gate = Promise.withResolvers<string>();
  const first = limiter(() => gate.promise);
  const givingUp = new AbortController();
  const second = limiter(() => Promise.reject(new Error('it must not run')), givingUp.signal);
  const third = limiter(async () => 'third', givingUp.signal);
  const fourth = limiter(async () => 'fourth');
  givingUp.abort(new Error('too late'));
  await expect(second).rejects.toThrow('too late');
  await expect(third).rejects.toThrow('too late');
  await expect(limiter(async () => 'never', givingUp.signal)).rejects.toThrow('too late');
  gate.resolve('first');
  expect(await Promise.all([first, fourth])).toEqual(['first', 'fourth']);
});
