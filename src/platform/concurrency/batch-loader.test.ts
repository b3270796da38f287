import { expect, test } from 'vitest';
import { createBatchLoader } from './answer-cache.ts';

function setUp(values: Record<string, number> = { a: 1, b: 2 }) {
  const asked: (readonly string[])[] = [];
  const find = createBatchLoader(async (keys: readonly string[]) => {
    asked.push(keys);
    return new Map(Object.entries(values).filter(([key]) => keys.includes(key)));
  });
  return { asked, find, values };
}

test('asks once for all keys of one turn, and gives each its own value', async () => {
  const { asked, find } = setUp();
  expect(await Promise.all([find('a'), find('b'), find('a'), find('none')])).toEqual([
    1,
    2,
    1,
    undefined,
  ]);
  expect(asked).toEqual([['a', 'b', 'none']]);
});

test('asks again for who comes later, also while an answer is under way', async () => {
  const { asked, find, values } = setUp();
  const first = find('a');
  await new Promise(setImmediate);
  values['a'] = 7;
  expect(await find('a')).toBe(7);
  await first;
  expect(asked).toEqual([['a'], ['a']]);
});

test('a failure reaches all who asked, and none who asks later', async () => {
  let failures = 1;
  const find = createBatchLoader(async (keys: readonly string[]) => {
    if (failures-- > 0) throw new Error('the disk is away');
    return new Map(keys.map((key) => [key, key.length]));
  });
  const outcomes = await Promise.allSettled([find('a'), find('bb')]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await find('bb')).toBe(2);
});
