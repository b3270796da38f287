import { expect, onTestFinished, test, vi } from 'vitest';
import { createEventLoopYield } from './turns.ts';

test('work that only ever waits for settled promises still lets others have their turn', async () => {
  const yieldToEventLoop = createEventLoopYield();
  let isOver = false;
  let received = 0;
  const listen = () => {
    received += 1;
    if (!isOver) setImmediate(listen);
  };
  setImmediate(listen);
  // A busy machine may hold the test up; work that lets nobody have a turn hears of none in all this time.
  const endsAt = performance.now() + 10_000;
  while (received <= 3 && performance.now() < endsAt) await yieldToEventLoop();
  isOver = true;
  expect(received).toBeGreaterThan(3);
});

test('a short turn is not broken off', async () => {
  // On a busy machine even this would last too long by the real clock.
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const yieldToEventLoop = createEventLoopYield();
  let isOthersTurn = false;
  setImmediate(() => {
    isOthersTurn = true;
  });
  await yieldToEventLoop();
  await yieldToEventLoop();
  expect(isOthersTurn).toBe(false);
});
