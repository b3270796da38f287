import { expect, test } from 'vitest';
import { createRevocationSet } from './change-aware-cache.ts';

function marksAt(max = 100) {
  const clock = { time: 0 };
  return {
    clock,
    marks: createRevocationSet({ forMs: 1_000, max: max, monotonicMs: () => clock.time }),
  };
}

test('a mark stays for its whole time, whatever is marked meanwhile', () => {
  const { clock, marks } = marksAt();
  for (let start = 0; start < 5_000; start += 333) {
    clock.time = start;
    marks.add(`at ${start}`);
    for (let marked = 0; marked <= start; marked += 333) {
      if (start - marked < 1_000)
        expect(marks.has(`at ${marked}`), `${marked} of ${start}`).toBe(true);
    }
  }
});

test('an old mark goes, so that they do not pile up', () => {
  const { clock, marks } = marksAt();
  for (const time of [0, 1_000, 2_000]) {
    clock.time = time;
    marks.add(`at ${time}`);
  }
  expect(marks.has('at 0')).toBe(false);
  expect(marks.has('at 1000')).toBe(true);
});

test('more marks than may be kept are told, and nothing is kept of them', () => {
  const { marks } = marksAt(2);
  expect([marks.add('a'), marks.add('b'), marks.add('c')]).toEqual([true, true, false]);
  expect(marks.has('a')).toBe(false);
  expect(marks.add('d')).toBe(true);
});

test('no name is never marked', () => {
  const { marks } = marksAt();
  marks.add('');
  expect(marks.has(undefined)).toBe(false);
});
