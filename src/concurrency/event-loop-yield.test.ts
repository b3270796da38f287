import { expect, onTestFinished, test, vi } from 'vitest';
import { createEventLoopYield } from './event-loop-yield.ts';

test('work that only ever waits for settled promises still lets others have their turn', async () => {
  const yieldToEventLoop = createEventLoopYield();
  let isOver = false;
  let heard = 0;
  const listen = () => {
    heard += 1;
    if (!isOver) setImmediate(listen);
  };
  setImmediate(listen);
  const endsAt = performance.now() + 100;
  while (performance.now() < endsAt) await yieldToEventLoop();
  isOver = true;
  expect(heard).toBeGreaterThan(3);
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
