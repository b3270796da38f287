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

test('keys take turns, and one of them leaves places to others', async () => {
  const limiter = createLimiter(3, { limitPerKey: 2 });
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const add = (key: string, name: string) =>
    limiter(
      () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.push(resolve));
      },
      undefined,
      key,
    );
  const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) => add(name[0] ?? '', name));
  expect(begun).toEqual(['a1', 'a2', 'b1']);
  while (begun.length < all.length) {
    ends.shift()?.();
    await new Promise(setImmediate);
  }
  for (const end of ends) end();
  await Promise.all(all);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'c1', 'a4']);
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
