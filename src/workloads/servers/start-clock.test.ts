import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SpawnPhase } from '../../plugin/host/spawn-request.ts';
import { createStartClock } from './start-clock.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Tells phases one second apart of a start that has 10 seconds, and says after how many it was over. */
function secondsUntilOver(phases: readonly (SpawnPhase | undefined)[], longest = 1_000): number {
  using clock = createStartClock(10_000);
  for (let second = 0; second < longest; second += 1) {
    if (clock.signal.aborted) return second;
    const phase = phases[second];
    if (second < phases.length) {
      clock.onProgress({ progress: 1, message: 'x', ...(phase !== undefined && { phase }) });
    }
    vi.advanceTimersByTime(1_000);
  }
  return longest;
}

test('a start has its time, whatever is told without a phase', () => {
  expect(secondsUntilOver([])).toBe(10);
  expect(secondsUntilOver(Array.from({ length: 20 }, () => undefined))).toBe(10);
});

test('in a queue no time passes; after it the whole time begins', () => {
  expect(secondsUntilOver(['pending'])).toBe(1_000);
  expect(secondsUntilOver(['pending', undefined])).toBe(1_000);
  expect(secondsUntilOver([...Array<SpawnPhase>(50).fill('pending'), 'starting'])).toBe(60);
});

test('each event of a pull or of the scheduler begins the time again', () => {
  expect(secondsUntilOver(Array<SpawnPhase>(30).fill('pulling'))).toBe(39);
  expect(secondsUntilOver(Array<SpawnPhase>(30).fill('scheduling'))).toBe(39);
});

test('telling again and again that it starts gives no more time', () => {
  expect(secondsUntilOver(Array<SpawnPhase>(30).fill('starting'))).toBe(10);
});

test('a time that no timer can count is not over at once', () => {
  using clock = createStartClock(2 ** 40);
  vi.advanceTimersByTime(1_000);
  expect(clock.signal.aborted).toBe(false);
});
