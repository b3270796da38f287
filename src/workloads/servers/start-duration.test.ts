import { expect, test } from 'vitest';
import { createStartDuration } from './start-duration.ts';

test('the time in a queue is no part of a start', () => {
  let nowMs = 0;
  const duration = createStartDuration(() => nowMs);
  nowMs = 2_000;
  duration.onQueued(true);
  nowMs = 60_000;
  expect(duration.ms()).toBe(2_000);
  duration.onQueued(true);
  nowMs = 70_000;
  duration.onQueued(false);
  nowMs = 75_000;
  expect(duration.ms()).toBe(7_000);
});
