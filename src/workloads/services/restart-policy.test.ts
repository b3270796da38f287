import { describe, expect, test } from 'vitest';
import { decideRestart, defaultRestartLimits } from './restart-policy.ts';

const latest = () => 1;
const earliest = () => 0;

function delaysOf(ends: number, random: () => number): number[] {
  const delays: number[] = [];
  let failuresBefore = 0;
  for (let end = 0; end < ends; end += 1) {
    const decision = decideRestart({ failuresBefore, ranForMs: 100 }, defaultRestartLimits, random);
    delays.push(decision.delayMs);
    failuresBefore = decision.failures;
  }
  return delays;
}

describe('the restart policy', () => {
  test('restarts at once the first time, then ever later up to the cap', () => {
    const seconds = delaysOf(10, latest).map((delayMs) => delayMs / 1000);
    expect(seconds).toEqual([0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test('jitter takes off up to half', () => {
    const seconds = delaysOf(9, earliest).map((delayMs) => delayMs / 1000);
    expect(seconds).toEqual([0, 0.5, 1, 2, 4, 8, 16, 30, 30]);
  });

  test('never gives up, however long it goes on', () => {
    const end = { failuresBefore: 1_000_000, ranForMs: 0 };
    const decision = decideRestart(end, defaultRestartLimits, latest);
    expect(decision).toEqual({ delayMs: 60_000, failures: 1_000_001, isCrashLooping: true });
  });

  test('a stable run clears what was before it', () => {
    const end = { failuresBefore: 30, ranForMs: 60_000 };
    const decision = decideRestart(end, defaultRestartLimits, latest);
    expect(decision).toEqual({ delayMs: 0, failures: 1, isCrashLooping: false });
  });

  test('a run that is a moment too short clears nothing', () => {
    const end = { failuresBefore: 3, ranForMs: 59_999 };
    expect(decideRestart(end, defaultRestartLimits, latest).failures).toBe(4);
  });

  test('it is a crash loop from the fifth failure in a row', () => {
    const isLoop = (failuresBefore: number) =>
      decideRestart({ failuresBefore, ranForMs: 0 }, defaultRestartLimits, latest).isCrashLooping;
    expect([3, 4, 5].map(isLoop)).toEqual([false, true, true]);
  });
});
