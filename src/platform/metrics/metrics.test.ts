import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';
import { processMetrics } from './process-metrics.ts';

test('requests to services are figures of a counter and of a histogram', async () => {
  const metrics = createMetrics();
  const wiki = { routeKind: 'service', service: 'wiki' };
  for (const seconds of [0.001, 0.005, 0.02, 40]) {
    metrics.countForwarded({ ...wiki, status: seconds > 30 ? 504 : 200, seconds });
  }
  metrics.countForwarded({ routeKind: 'server', service: '', status: 200, seconds: 0.3 });
  const samples = (await metrics.exposition())
    .split('\n')
    .filter((line) => line.startsWith('hub_forwarded') && line.includes('wiki'));
  const of = 'route_kind="service",service="wiki"';
  const duration = 'hub_forwarded_request_duration_seconds';
  expect(samples).toEqual([
    `hub_forwarded_requests_total{${of},code="200"} 3`,
    `hub_forwarded_requests_total{${of},code="504"} 1`,
    // Up to and including its bound, and everything before it.
    `${duration}_bucket{le="0.005",${of}} 2`,
    `${duration}_bucket{le="0.01",${of}} 2`,
    ...['0.025', '0.05', '0.1', '0.25', '0.5', '1', '2.5', '5', '10', '30'].map(
      (le) => `${duration}_bucket{le="${le}",${of}} 3`,
    ),
    `${duration}_bucket{le="+Inf",${of}} 4`,
    `${duration}_sum{${of}} 40.026`,
    `${duration}_count{${of}} 4`,
  ]);
});

test('a second hub in a process measures no more of it than the first, and publishes the same', async () => {
  expect(processMetrics()).toBe(processMetrics());
  const [one, other] = [createMetrics(), createMetrics()];
  expect(other.list()).toEqual(one.list());
  // A look that comes before any timer was late finds no figures.
  expect(await one.exposition()).toMatch(/^nodejs_eventloop_lag_p99_seconds 0$/m);
});
