import { Counter, Histogram, type OpenMetricsContentType, Registry } from 'prom-client';
import {
  ForwardedFigures,
  type ForwardedPart,
  type ForwardedRequest,
} from './forwarded-figures.ts';
import { type MetricSources, registerSources } from './metric-sources.ts';
import { processMetrics } from './process-metrics.ts';

/** What a metric is called and means. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

type UsedSeconds = Readonly<
  Record<'wallSeconds' | 'cpuSeconds' | 'gibSeconds' | 'gpuSeconds', number>
>;

const logoutOutcomes = ['delivered', 'refused', 'failed', 'given_up'] as const;
/** What became of telling a client that a login has ended. */
export type LogoutOutcome = (typeof logoutOutcomes)[number];

/** The formats that the metrics can be had in, as they are named in `Content-Type`. */
export const metricsTypes = {
  prometheus: Registry.PROMETHEUS_CONTENT_TYPE,
  openMetrics: Registry.OPENMETRICS_CONTENT_TYPE,
} as const;

/** What the parts of the hub count. */
export interface Metrics {
  countRequest(method: string, status: number, seconds: number): void;
  /** What the hub has answered itself since it started. */
  answered(): { readonly requests: number; readonly seconds: number };
  countForwarded(request: ForwardedRequest): void;
  /** Adds what gateway processes counted. */
  addForwarded(parts: readonly ForwardedPart[]): void;
  countLogin(
    authenticator: string,
    outcome: 'logged_in' | 'refused' | 'throttled' | 'failed',
  ): void;
  countGrant(clientKind: 'service' | 'server' | 'agent' | 'gateway'): void;
  countOAuthRefusal(error: string): void;
  countLogoutDelivery(outcome: LogoutOutcome): void;
  countSpawn(outcome: 'ready' | 'failed' | 'cancelled', seconds: number): void;
  /** What users' servers used; `profile` is one of the configuration, or empty. */
  countUse(of: Readonly<Record<'profile' | 'engine', string>>, use: UsedSeconds): void;
  countStopAtLimit(reason: 'idle_timeout' | 'max_age' | 'budget'): void;
  countAudit(result: string): void;
  /** Tells how many lines the audit file has lost; call once. */
  observeAuditFile(droppedLines: () => number): void;
  /** Registers the sources; call once, when all parts exist. */
  observe(sources: MetricSources): void;
  /** Every metric of the hub itself, whether it has a value yet or not. */
  list(): readonly MetricDescription[];
  /** Everything, in the text format of Prometheus unless OpenMetrics is asked for. */
  exposition(contentType?: (typeof metricsTypes)[keyof typeof metricsTypes]): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  for (const metric of processMetrics()) registry.registerMetric(metric);

  const requests = new Histogram({
    name: 'hub_http_request_duration_seconds',
    help: 'Requests answered by the hub itself.',
    labelNames: ['method', 'code'],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  let answeredRequests = 0;
  let answeredSeconds = 0;
  const forwarded = new ForwardedFigures();
  new Counter({
    name: 'hub_forwarded_requests_total',
    help: "Requests to services, by name, and to users' servers, all together, by status.",
    labelNames: ['route_kind', 'service', 'code'],
    registers,
    collect() {
      this.reset();
      for (const { labels, total } of forwarded.totals()) this.inc(labels, total);
    },
  });
  forwarded.registerDurations(registry, {
    name: 'hub_forwarded_request_duration_seconds',
    help: "Requests to services, by name, and to users' servers, all together, until the answer is sent.",
  });
  const logins = new Counter({
    name: 'hub_logins_total',
    help: 'Attempts to log in, by authenticator and outcome.',
    labelNames: ['authenticator', 'outcome'],
    registers,
  });
  const grants = new Counter({
    name: 'hub_oauth_grants_total',
    help: 'Access tokens issued for authorization codes, by kind of client.',
    labelNames: ['client_kind'],
    registers,
  });
  const refusals = new Counter({
    name: 'hub_oauth_refusals_total',
    help: 'Refused authorization and token requests, by error code of RFC 6749.',
    labelNames: ['error'],
    registers,
  });
  const logoutDeliveries = new Counter({
    name: 'hub_logout_deliveries_total',
    help: 'Clients told that a login has ended, by outcome; what failed is tried again.',
    labelNames: ['outcome'],
    registers,
  });
  for (const outcome of logoutOutcomes) logoutDeliveries.inc({ outcome }, 0);
  const spawns = new Histogram({
    name: 'hub_server_spawn_duration_seconds',
    help: "Starts of users' servers, by outcome.",
    labelNames: ['outcome'],
    buckets: [0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300],
    registers,
  });
  // A rate can only be taken of a series that is there before the first event.
  for (const outcome of ['ready', 'failed', 'cancelled']) spawns.zero({ outcome });

  const stopsAtLimit = new Counter({
    name: 'hub_servers_stopped_by_limit_total',
    help: "Users' servers stopped by a time limit or a budget, by which.",
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['idle_timeout', 'max_age', 'budget']) stopsAtLimit.inc({ reason }, 0);

  const used = (
    [
      ['wallSeconds', 'hub_server_use_seconds_total', "Time that users' servers ran"],
      ['cpuSeconds', 'hub_server_use_cpu_seconds_total', "Time of cores that users' servers used"],
      ['gibSeconds', 'hub_server_use_gib_seconds_total', "GiB of memory of users' servers by time"],
      ['gpuSeconds', 'hub_server_use_gpu_seconds_total', "GPUs that users' servers had by time"],
    ] as const
  ).map(([amount, name, what]) => {
    const help = `${what}, by profile and class of the spawner.`;
    const counter = new Counter({ name, help, labelNames: ['profile', 'engine'], registers });
    return { amount, counter };
  });

  const audited = new Counter({
    name: 'hub_audit_records_total',
    help: 'Rows written to the audit log, by result.',
    labelNames: ['result'],
    registers,
  });
  let droppedAuditLines = () => 0;
  new Counter({
    name: 'hub_audit_file_lines_dropped_total',
    help: 'Lines that Hub.audit_file has lost because it could not be written.',
    registers,
    collect() {
      this.reset();
      this.inc(droppedAuditLines());
    },
  });

  return {
    list: () => registry.getMetricsAsArray().map(describeMetric),
    exposition: (contentType) =>
      (contentType === metricsTypes.openMetrics ? inOpenMetrics(registry) : registry).metrics(),
    countRequest(method, status, seconds) {
      answeredRequests += 1;
      answeredSeconds += seconds;
      requests.observe({ method: knownMethod(method), code: String(status) }, seconds);
    },
    answered: () => ({ requests: answeredRequests, seconds: answeredSeconds }),
    countForwarded: forwarded.count.bind(forwarded),
    addForwarded(parts) {
      for (const part of parts) forwarded.add(part);
    },
    countLogin: (authenticator, outcome) => logins.inc({ authenticator, outcome }),
    countGrant: (clientKind) => grants.inc({ client_kind: clientKind }),
    countOAuthRefusal: (error) => refusals.inc({ error }),
    countLogoutDelivery: (outcome) => logoutDeliveries.inc({ outcome }),
    countSpawn: (outcome, seconds) => spawns.observe({ outcome }, seconds),
    countUse(of, use) {
      for (const { amount, counter } of used) counter.inc(of, use[amount]);
    },
    countStopAtLimit: (reason) => stopsAtLimit.inc({ reason }),
    countAudit: (result) => audited.inc({ result }),
    observeAuditFile(droppedLines) {
      droppedAuditLines = droppedLines;
    },
    observe: (sources) => registerSources(sources, registers),
  };
}

/** For OpenMetrics the library renames counters, and for good: it gets some that only have their figures from these. */
function inOpenMetrics(registry: Registry): Registry<OpenMetricsContentType> {
  const other = new Registry<OpenMetricsContentType>();
  other.setContentType(metricsTypes.openMetrics);
  for (const metric of registry.getMetricsAsArray()) {
    const isCounter = String(metric.type) === 'counter';
    other.registerMetric((isCounter ? Object.create(metric) : metric) as Counter);
  }
  return other;
}

function describeMetric(metric: ReturnType<Registry['getMetricsAsArray']>[number]) {
  const { name, help, type } = metric;
  // The library's types leave out what its metrics keep of their configuration.
  const { labelNames = [] } = metric as { readonly labelNames?: readonly string[] };
  return { name, help, type: String(type), labels: labelNames };
}

/** Anything else a client sends as its method must not grow the number of series. */
function knownMethod(method: string): string {
  return /^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$/.test(method) ? method : 'other';
}
