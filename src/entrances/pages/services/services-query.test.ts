import { expect, test } from 'vitest';
import { urgencyOf } from './services-query.ts';

test('a service that keeps failing comes before one that does not answer, and both before others', () => {
  const states = ['ready', 'unhealthy', 'stopped', 'crash_looping', 'starting'] as const;
  const ordered = states.toSorted((one, other) => urgencyOf(one) - urgencyOf(other));
  expect(ordered).toEqual(['crash_looping', 'unhealthy', 'ready', 'stopped', 'starting']);
});
