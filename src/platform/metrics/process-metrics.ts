import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** How often the event loop is looked at. Each look wakes the process: at the library's 10 ms it would never sleep. */
const lagIntervalMs = 200;
/** The longest that a timer waits: the library looks too, and has no way not to. */
const neverMs = 2 ** 31 - 1;

type Metric = Parameters<Registry['registerMetric']>[0];

let made: readonly Metric[] | undefined;

/** Metrics of this process, made once: what they measure with does not end. */
export function processMetrics(): readonly Metric[] {
  made ??= make();
  return made;
}

function make(): readonly Metric[] {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: neverMs });
  // A name that ends in _total is a counter's, and these are gauges; the figures are those of the
  // metrics without the suffix, added up.
  for (const kind of ['resources', 'handles', 'requests'])
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  measureLag(registry);
  // What the library declares of its own metrics is less than they are.
  return registry.getMetricsAsArray() as unknown as Metric[];
}

/** Replaces the library's: by how much timers were late since the metrics were last read. */
function measureLag(registry: Registry): void {
  const delay = monitorEventLoopDelay({ resolution: lagIntervalMs });
  delay.enable();
  const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - lagIntervalMs / 1000);
  const figures = {
    min: () => late(delay.min),
    max: () => late(delay.max),
    mean: () => late(delay.mean),
    stddev: () => delay.stddev / 1e9,
    p50: () => late(delay.percentile(50)),
    p90: () => late(delay.percentile(90)),
    // Read last.
    p99: () => late(delay.percentile(99)),
  };
  for (const [figure, read] of Object.entries(figures)) {
    const name = `nodejs_eventloop_lag_${figure}_seconds`;
    registry.removeSingleMetric(name);
    new Gauge({
      name,
      help: `By how much timers were late since the last look: ${figure}.`,
      registers: [registry],
      collect() {
        this.set(delay.count === 0 ? 0 : read());
        if (figure === 'p99') delay.reset();
      },
    });
  }
}
