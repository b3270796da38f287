import { expect, test } from 'vitest';
import { inOwnTurn } from './turns.ts';

test('work runs in the order of the calls, each in a turn of its own', async () => {
  const events: string[] = [];
  for (const name of ['first', 'second', 'third']) inOwnTurn((text) => events.push(text), name);
  expect(events).toEqual([]);
  for (let turn = 1; turn <= 3; turn += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    events.push(`after turn ${turn}`);
  }
  expect(events).toEqual([
    'first',
    'after turn 1',
    'second',
    'after turn 2',
    'third',
    'after turn 3',
  ]);
});
