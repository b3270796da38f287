import { afterEach, expect, test, vi } from 'vitest';
import { collectGarbage, collectWhenQuiet } from './collect-garbage.ts';

const mebibyte = 1024 * 1024;

afterEach(() => void vi.useRealTimers());

function setUp({ share }: { share: number }) {
  vi.useFakeTimers();
  const program = { share, bytes: 40 * mebibyte, collected: 0 };
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

test('the garbage of the start is collected in the first quiet seconds, once', () => {
  const { program, collecting } = setUp({ share: 0.6 });
  using _ = collecting;
  vi.advanceTimersByTime(4_000);
  expect(program.collected).toBe(0);
  program.share = 0.001;
  vi.advanceTimersByTime(2_000);
  expect(program.collected).toBe(1);
  vi.advanceTimersByTime(3_600_000);
  expect(program.collected).toBe(1);
});

test('between two bursts of work nothing is collected, so that the second runs compiled code', () => {
  const { program, collecting } = setUp({ share: 0.001 });
  using _ = collecting;
  vi.advanceTimersByTime(10_000);
  expect(program.collected).toBe(1);
  for (let burst = 0; burst < 5; burst += 1) {
    Object.assign(program, { share: 0.9, bytes: 200 * mebibyte });
    vi.advanceTimersByTime(10_000);
    program.share = 0.001;
    vi.advanceTimersByTime(240_000);
  }
  expect(program.collected).toBe(1);
});

test('a program that is busy from its start is not interrupted by the collection of the start', () => {
  const { program, collecting } = setUp({ share: 0.9 });
  using _ = collecting;
  vi.advanceTimersByTime(20_000);
  program.share = 0.001;
  vi.advanceTimersByTime(240_000);
  expect(program.collected).toBe(0);
});

test('what work has left is collected after minutes without any, and not again until there is more', () => {
  const { program, collecting } = setUp({ share: 0.001 });
  using _ = collecting;
  vi.advanceTimersByTime(10_000);
  Object.assign(program, { share: 0.9, bytes: 200 * mebibyte });
  vi.advanceTimersByTime(60_000);
  program.share = 0.001;
  vi.advanceTimersByTime(3_600_000);
  expect(program.collected).toBe(2);
  program.bytes = 50 * mebibyte;
  vi.advanceTimersByTime(3_600_000);
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
