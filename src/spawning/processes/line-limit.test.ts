import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLineLimit } from './line-limit.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const lines: string[] = [];
  const limit = createLineLimit({
    linesPerSecond: 3,
    onLine: (line) => lines.push(line),
    onSuppressed: (count) => lines.push(`${count} more`),
  });
  return { lines, limit };
}

test('a few lines pass, and a flood is counted each second', () => {
  const { lines, limit } = setUp();
  for (let line = 0; line < 10; line += 1) limit.push(`${line}`);
  expect(lines).toEqual(['0', '1', '2']);
  vi.advanceTimersByTime(1_000);
  expect(lines).toEqual(['0', '1', '2', '7 more']);
  limit.push('later');
  vi.advanceTimersByTime(1_000);
  expect(lines.at(-1)).toBe('later');
});

test('the count is told when the program ends', () => {
  const { lines, limit } = setUp();
  for (let line = 0; line < 5; line += 1) limit.push(`${line}`);
  limit[Symbol.dispose]();
  expect(lines.at(-1)).toBe('2 more');
});
