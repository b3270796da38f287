import { expect, test } from 'vitest';
import { isPeriodic } from './periodic-requests.ts';

test.each([
  ['GET', '/user/ann/api/kernels?1700000000000', true],
  ['GET', '/user/ann/api/contents/a/b.ipynb?content=1', true],
  ['GET', '/api/sessions', true],
  ['POST', '/user/ann/api/sessions', false],
  ['POST', '/user/ann/events/get_events', true],
  ['GET', '/user/ann/_stcore/health', true],
  ['GET', '/user/ann/tree?next=/api/kernels', false],
  ['GET', '/user/ann/my-api/kernels.html', false],
  ['PUT', '/user/ann/api/contents/a', false],
])('%s %s says nothing of its visitor: %s', (method, url, isIt) => {
  expect(isPeriodic(method, url)).toBe(isIt);
});
