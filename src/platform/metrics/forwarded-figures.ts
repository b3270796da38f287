import type { Histogram, Registry } from 'prom-client';

/** A request to a server or service that is over. */
export interface ForwardedRequest {
  readonly routeKind: string;
  /** Name of the service; empty where it is none. */
  readonly service: string;
  readonly status: number;
  readonly seconds: number;
}

/** Figures of one kind of route and service, as they go from a gateway process to its hub. */
export interface ForwardedPart {
  readonly route_kind: string;
  readonly service: string;
  /** Requests by status. */
  readonly totals: Record<string, number>;
  readonly buckets: number[];
  readonly sum: number;
}

/** Seconds up to which a request counts into a bucket, the last being without end. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** A sample as the registry writes it. */
interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly totalByStatus: Map<number, number>;
  /** One more than there are bounds. */
  readonly buckets: number[];
  sum: number;
}

/**
 * The figures of forwarded requests. They are kept here and handed over when they are asked for: to
 * look up the labels of a counter and a histogram would cost each request more than all else that is
 * noted of it.
 */
export class ForwardedFigures {
  readonly #seriesByKind = new Map<string, Map<string, Series>>();

  count({ routeKind, service, status, seconds }: ForwardedRequest): void {
    const series = this.#seriesOf(routeKind, service);
    series.totalByStatus.set(status, (series.totalByStatus.get(status) ?? 0) + 1);
    let bucket = 0;
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1;
    series.buckets[bucket] = (series.buckets[bucket] ?? 0) + 1;
    series.sum += seconds;
  }

  /** What was counted since this was called last. */
  take(): ForwardedPart[] {
    const parts = [...this.#all()].map(({ labels, totalByStatus, buckets, sum }) => ({
      route_kind: labels['route_kind'] ?? '',
      service: labels['service'] ?? '',
      totals: Object.fromEntries(totalByStatus),
      buckets,
      sum,
    }));
    this.#seriesByKind.clear();
    return parts;
  }

  /** Adds what was counted elsewhere. */
  add({ route_kind, service, totals, buckets, sum }: ForwardedPart): void {
    const series = this.#seriesOf(route_kind, service);
    for (const [status, total] of Object.entries(totals)) {
      const code = Number(status);
      series.totalByStatus.set(code, (series.totalByStatus.get(code) ?? 0) + total);
    }
    for (let index = 0; index < series.buckets.length; index += 1) {
      series.buckets[index] = (series.buckets[index] ?? 0) + (buckets[index] ?? 0);
    }
    series.sum += sum;
  }

  *totals(): Iterable<{ readonly labels: Record<string, string>; readonly total: number }> {
    for (const { labels, totalByStatus } of this.#all()) {
      for (const [status, total] of totalByStatus) {
        yield { labels: { ...labels, code: String(status) }, total };
      }
    }
  }

  /** Registers the durations as a histogram. */
  registerDurations(
    registry: Registry,
    description: { readonly name: string; readonly help: string },
  ) {
    const histogram = {
      ...description,
      type: 'histogram',
      aggregator: 'sum',
      labelNames: ['route_kind', 'service'],
      get: async () => ({
        ...description,
        type: 'histogram',
        aggregator: 'sum',
        values: [...this.#all()].flatMap((series) => samplesOf(description.name, series)),
      }),
    };
    // The registry asks a metric for its name and its samples and for nothing else.
    registry.registerMetric(histogram as unknown as Histogram);
  }

  *#all(): Iterable<Series> {
    for (const byService of this.#seriesByKind.values()) yield* byService.values();
  }

  #seriesOf(routeKind: string, service: string): Series {
    let byService = this.#seriesByKind.get(routeKind);
    if (byService === undefined) {
      byService = new Map();
      this.#seriesByKind.set(routeKind, byService);
    }
    let series = byService.get(service);
    if (series === undefined) {
      series = {
        labels: { route_kind: routeKind, service },
        totalByStatus: new Map(),
        buckets: Array(bounds.length + 1).fill(0),
        sum: 0,
      };
      byService.set(service, series);
    }
    return series;
  }
}

function samplesOf(name: string, { labels, buckets, sum }: Series): Sample[] {
  let count = 0;
  const samples = buckets.map((inBucket, index) => {
    count += inBucket;
    const le = index < bounds.length ? String(bounds[index]) : '+Inf';
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
  });
  return [
    ...samples,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ];
}
