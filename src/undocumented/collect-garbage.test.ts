import { afterEach, expect, test, vi } from 'vitest';
import { collectGarbage, collectWhenQuiet } from './collect-garbage.ts';

const mebibyte = 1024 * 1024;

afterEach(() => void vi.useRealTimers());

function setUp() {
  vi.useFakeTimers();
  const program = { share: 0, bytes: 0, collected: 0 };
  const collecting = collectWhenQuiet({
    busyShare: () => program.share,
    heapBytes: () => program.bytes,
    collect() {
      program.collected += 1;
      program.bytes = 30 * mebibyte;
    },
  });
  return { program, collecting };
}

test('garbage is collected when the program has grown and is quiet, and not again until it has grown', () => {
  const { program, collecting } = setUp();
  using _ = collecting;
  Object.assign(program, { share: 0.6, bytes: 50 * mebibyte });
  vi.advanceTimersByTime(60_000);
  expect(program.collected).toBe(0);
  program.share = 0.001;
  vi.advanceTimersByTime(60_000);
  expect(program.collected).toBe(1);
  program.bytes = 100 * mebibyte;
  vi.advanceTimersByTime(60_000);
  expect(program.collected).toBe(2);
});

test('a collection gives memory back that is not in use', () => {
  let held: unknown[] | undefined = Array.from({ length: 2_000_000 }, (_, index) => ({ index }));
  expect(held).toHaveLength(2_000_000);
  const before = process.memoryUsage().heapTotal;
  held = undefined;
  collectGarbage();
  expect(before - process.memoryUsage().heapTotal).toBeGreaterThan(32 * mebibyte);
});
