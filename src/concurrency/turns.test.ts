import { expect, test } from 'vitest';
import { Turns } from './turns.ts';

test('work that only ever waits for settled promises still lets others have their turn', async () => {
  const turns = new Turns();
  let isOver = false;
  let heard = 0;
  const listen = () => {
    heard += 1;
    if (!isOver) setImmediate(listen);
  };
  setImmediate(listen);
  const endsAt = performance.now() + 100;
  while (performance.now() < endsAt) await turns.take();
  isOver = true;
  expect(heard).toBeGreaterThan(3);
});

test('a short turn is not broken off', async () => {
  const turns = new Turns();
  let isOthersTurn = false;
  setImmediate(() => {
    isOthersTurn = true;
  });
  await turns.take();
  await turns.take();
  expect(isOthersTurn).toBe(false);
});
