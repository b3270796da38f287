import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createFairListener } from './fair-listener.ts';

const response = {} as ServerResponse;
const request = (url: string) => ({ url }) as IncomingMessage;

function busyFor(milliseconds: number): void {
  const endsAt = performance.now() + milliseconds;
  while (performance.now() < endsAt);
}

test('a burst of requests lets others have their turn, and everybody is answered in order', async () => {
  const answered: string[] = [];
  const allAnswered = Promise.withResolvers<void>();
  const listener = createFairListener(async ({ url = '' }) => {
    answered.push(url);
    busyFor(2);
    if (answered.includes('/last')) allAnswered.resolve();
  }, []);
  for (let index = 0; index < 50; index += 1) listener(request(`/${index}`), response);
  listener(request('/last'), response);
  setImmediate(() => answered.push('somebody else'));
  await allAnswered.promise;
  expect(answered.indexOf('somebody else')).toBeLessThan(25);
  expect(answered.filter((url) => url !== 'somebody else')).toEqual([
    ...Array.from({ length: 50 }, (_, index) => `/${index}`),
    '/last',
  ]);
});

test('what is urgent is answered before a burst that came first', async () => {
  const answered: string[] = [];
  const listener = createFairListener(
    async ({ url = '' }) => {
      answered.push(url);
      busyFor(2);
    },
    ['/hub/health'],
  );
  for (let index = 0; index < 20; index += 1) listener(request('/hub/api/users'), response);
  listener(request('/hub/health'), response);
  expect(answered).toContain('/hub/health');
  expect(answered.length).toBeLessThan(3);
});
