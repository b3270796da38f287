import { expect, test } from 'vitest';
import { createBodyMemory } from './body-memory.ts';

const mebibyte = 1024 * 1024;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('young objects are collected once for every 16 MiB that pass, and not while a piece is worked on', async () => {
  let collections = 0;
  const memory = createBodyMemory({
    collectYoung: () => {
      collections += 1;
    },
  });
  for (let passed = 0; passed < 15; passed++) memory.passed(mebibyte);
  await nextTurn();
  expect(collections).toBe(0);
  for (let passed = 0; passed < 20; passed++) memory.passed(mebibyte);
  expect(collections).toBe(0);
  await nextTurn();
  expect(collections).toBe(1);
  memory.passed(mebibyte);
  await nextTurn();
  expect(collections).toBe(1);
});

test('nothing happens where collections cannot be asked for', async () => {
  const memory = createBodyMemory({ collectYoung: undefined });
  memory.passed(100 * mebibyte);
  await nextTurn();
});
