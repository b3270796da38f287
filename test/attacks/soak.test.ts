import { expect, test } from 'vitest';
import { soak } from '../../bench/soak/soak.ts';

// The same as `npm run bench -- soak`, with fewer of everything.
test('rows 38, 48 and 49: after a storm of dying applications and leaving clients the hub holds what it held before', async () => {
  const { before, during, after, openedWebSockets, outcomes } = await soak({
    webSockets: 150,
    rounds: 3,
    requestsPerRound: 400,
  });
  expect(openedWebSockets).toBeGreaterThan(400);
  expect(during.openFiles).toBeGreaterThan(before.openFiles + 200);
  expect(outcomes['500']).toBeUndefined();
  expect(after.sockets).toBeLessThanOrEqual(before.sockets);
  expect(after.openFiles).toBeLessThanOrEqual(before.openFiles + 2);
  expect(after.heapBytes).toBeLessThan(before.heapBytes * 1.1 + 4 * 2 ** 20);
});
