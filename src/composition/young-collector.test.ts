import { constants, PerformanceObserver } from 'node:perf_hooks';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createYoungCollector } from './young-collector.ts';

test('collects young objects, and nobody else can', async () => {
  const collect = createYoungCollector();
  expect(() => runInNewContext('gc')).toThrow('gc is not defined');
  const kinds = new Promise<unknown[]>((resolve) => {
    new PerformanceObserver((list, observer) => {
      observer.disconnect();
      resolve(
        list
          .getEntries()
          .map((entry) => (entry as unknown as { detail: { kind: number } }).detail.kind),
      );
    }).observe({ entryTypes: ['gc'] });
  });
  collect();
  expect(await kinds).toContain(constants.NODE_PERFORMANCE_GC_MINOR);
});
