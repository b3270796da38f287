import { expect, test } from 'vitest';
import { createServerWork } from './server-work.ts';

/** Takes one measurement after the other of the server `s`; the numbers of those at which it worked. */
function workedAt(cores: readonly (number | undefined)[], idleCores = 0.05): number[] {
  const worked: number[] = [];
  let step = 0;
  const work = createServerWork({ idleCores, onWork: () => worked.push(step) });
  for (const each of cores) {
    work.take(['s'], new Map(each === undefined ? [] : [['s', { cpuCores: each }]]));
    step += 1;
  }
  return worked;
}

test('a server that calculates works, and a moment of it in a minute is none', () => {
  expect(workedAt([1, 1, 1])).toEqual([0, 1, 2]);
  expect(workedAt([0, 0, 0, 0, 0, 0.2, 0, 0])).toEqual([]);
  expect(workedAt([0, 0, 0, 0, 0, 0.9, 0, 0, 0, 0, 0, 0])).toEqual([5, 6, 7, 8, 9, 10]);
});

test('a counter that says nothing, or nonsense, is no work, and is not forgotten for once', () => {
  expect(workedAt([1, undefined, undefined])).toEqual([0]);
  expect(workedAt([Number.NaN, -3, 0])).toEqual([]);
  const work = createServerWork({ idleCores: 0.05, onWork: () => undefined });
  expect(work.isMeasured('s')).toBe(false);
  work.take(['s'], new Map([['s', { cpuCores: 0 }]]));
  work.take(['s'], new Map());
  expect(work.isMeasured('s')).toBe(true);
  work.take([], new Map());
  expect(work.isMeasured('s')).toBe(false);
});

test('with idle_cpu_cores 0 work is not looked at', () => {
  expect(workedAt([1, 1], 0)).toEqual([]);
});
