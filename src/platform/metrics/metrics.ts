import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  ForwardedFigures,
  type ForwardedPart,
  type ForwardedRequest,
} from './forwarded-figures.ts';

/** State of one managed or external service, as monitoring sees it. */
export interface ServiceFigures {
  readonly name: string;
  readonly isUp: boolean;
  readonly state: string;
  readonly restarts: number;
  readonly cpuCores: number | undefined;
  readonly memoryBytes: number | undefined;
  readonly uptimeSeconds: number | undefined;
}

/** Figures that are read from their owners when monitoring asks, never kept in step by hand. */
export interface MetricSources {
  services(): readonly ServiceFigures[];
  serviceStates: readonly string[];
  serversByState(): Readonly<Record<string, number>>;
  /** What the users' servers of this instance use, all together. */
  serversTogether(): { readonly cpuCores: number; readonly memoryBytes: number };
  /** Undefined while the database does not tell. */
  users(): Promise<number | undefined>;
  /** Whether each storage answers. */
  storagesUp(): Promise<Readonly<Record<string, boolean>>>;
  /** Name and version of this instance of the hub. */
  instance: { readonly name: string; readonly version: string };
  /** How many instances have their lease, and how many have lost it without a word. */
  instancesByState(): Readonly<Record<'up' | 'down', number>>;
  openWebSockets(): number;
  isInMaintenance(): Promise<boolean>;
  /** Gateway processes that follow this instance. */
  gateways(): number;
  droppedLogLines(): number;
  /** How news of changes comes from the database. */
  changeFeed(): { readonly ageSeconds: number; readonly losses: number };
}

/** What a metric is called and means. */
export interface MetricDescription {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

const logoutOutcomes = ['delivered', 'refused', 'failed', 'given_up'] as const;
/** What became of telling a client that a login has ended. */
export type LogoutOutcome = (typeof logoutOutcomes)[number];

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
  countGrant(clientKind: 'service' | 'server' | 'gateway'): void;
  countOAuthRefusal(error: string): void;
  countLogoutDelivery(outcome: LogoutOutcome): void;
  countSpawn(outcome: 'ready' | 'failed' | 'cancelled', seconds: number): void;
  countStopAtLimit(reason: 'idle_timeout' | 'max_age'): void;
  countAudit(result: string): void;
  /** Tells how many lines the audit file has lost; call once. */
  observeAuditFile(droppedLines: () => number): void;
  /** Registers the sources; call once, when all parts exist. */
  observe(sources: MetricSources): void;
  /** Every metric of the hub itself, whether it has a value yet or not. */
  list(): readonly MetricDescription[];
  readonly contentType: string;
  /** Prometheus text exposition of everything. */
  exposition(): Promise<string>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  // A name that ends in _total is a counter's, and these are gauges; the figures are those of the
  // metrics without the suffix, added up.
  for (const kind of ['resources', 'handles', 'requests']) {
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  }

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
    help: "Users' servers stopped by a time limit, by which.",
    labelNames: ['reason'],
    registers,
  });
  for (const reason of ['idle_timeout', 'max_age']) stopsAtLimit.inc({ reason }, 0);

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
    contentType: registry.contentType,
    exposition: () => registry.metrics(),
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
    countStopAtLimit: (reason) => stopsAtLimit.inc({ reason }),
    countAudit: (result) => audited.inc({ result }),
    observeAuditFile(droppedLines) {
      droppedAuditLines = droppedLines;
    },
    observe: (sources) => registerSources(sources, registers),
  };
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

function registerSources(sources: MetricSources, registers: Registry[]): void {
  const serviceGauge = (
    name: string,
    help: string,
    value: (service: ServiceFigures) => number | undefined,
  ) =>
    new Gauge({
      name,
      help,
      labelNames: ['service'],
      registers,
      collect() {
        this.reset();
        for (const service of sources.services()) {
          const figure = value(service);
          if (figure !== undefined) this.set({ service: service.name }, figure);
        }
      },
    });

  serviceGauge('hub_service_up', 'Whether a service is ready (1) or not (0).', ({ isUp }) =>
    Number(isUp),
  );
  serviceGauge(
    'hub_service_cpu_cores',
    'Cores in use by a managed service.',
    ({ cpuCores }) => cpuCores,
  );
  serviceGauge(
    'hub_service_memory_bytes',
    'Resident memory of a managed service.',
    ({ memoryBytes }) => memoryBytes,
  );
  serviceGauge(
    'hub_service_uptime_seconds',
    'Seconds since a managed service started.',
    ({ uptimeSeconds }) => uptimeSeconds,
  );

  const { name: instance, version } = sources.instance;
  new Gauge({
    name: 'hub_instance_info',
    help: 'Name and version of the instance of the hub that is asked; always 1.',
    labelNames: ['instance', 'version'],
    registers,
  }).set({ instance, version }, 1);
  new Gauge({
    name: 'hub_instances',
    help: 'Instances of the hub that are there (up), and that are gone without a word (down).',
    labelNames: ['state'],
    registers,
    collect() {
      for (const [state, count] of Object.entries(sources.instancesByState())) {
        this.set({ state }, count);
      }
    },
  });

  new Gauge({
    name: 'hub_maintenance',
    help: 'Whether maintenance keeps servers from being started (1) or not (0).',
    registers,
    async collect() {
      this.set(Number(await sources.isInMaintenance()));
    },
  });

  new Gauge({
    name: 'hub_gateways',
    help: 'Gateway processes that follow the instance that is asked.',
    registers,
    collect() {
      this.set(sources.gateways());
    },
  });

  new Gauge({
    name: 'hub_service_state',
    help: 'State of a service: 1 for the state it is in.',
    labelNames: ['service', 'state'],
    registers,
    collect() {
      this.reset();
      for (const service of sources.services()) {
        for (const state of sources.serviceStates) {
          this.set({ service: service.name, state }, Number(service.state === state));
        }
      }
    },
  });
  new Counter({
    name: 'hub_service_restarts_total',
    help: 'Times a managed service was started again.',
    labelNames: ['service'],
    registers,
    collect() {
      this.reset();
      for (const { name, restarts } of sources.services()) this.inc({ service: name }, restarts);
    },
  });
  new Gauge({
    name: 'hub_servers',
    help: "Users' servers by state.",
    labelNames: ['state'],
    registers,
    collect() {
      this.reset();
      for (const [state, count] of Object.entries(sources.serversByState()))
        this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'hub_servers_cpu_cores',
    help: "Cores in use by users' servers of the instance that is asked, all together, as far as their spawners tell.",
    registers,
    collect() {
      this.set(sources.serversTogether().cpuCores);
    },
  });
  new Gauge({
    name: 'hub_servers_memory_bytes',
    help: "Memory in use by users' servers of the instance that is asked, all together, as far as their spawners tell.",
    registers,
    collect() {
      this.set(sources.serversTogether().memoryBytes);
    },
  });
  new Gauge({
    name: 'hub_users',
    help: 'Users known to the hub.',
    registers,
    async collect() {
      const users = await sources.users();
      if (users === undefined) this.remove();
      else this.set(users);
    },
  });
  new Gauge({
    name: 'hub_storage_up',
    help: 'Whether the database, and the store of expiring state, answer (1) or not (0).',
    labelNames: ['storage'],
    registers,
    async collect() {
      for (const [storage, isUp] of Object.entries(await sources.storagesUp()))
        this.set({ storage }, Number(isUp));
    },
  });
  new Counter({
    name: 'hub_log_lines_dropped_total',
    help: 'Log lines lost because they were not read in time.',
    registers,
    collect() {
      this.reset();
      this.inc(sources.droppedLogLines());
    },
  });
  new Counter({
    name: 'hub_change_feed_losses_total',
    help: 'Times the connection that tells of changes in the database was found dead and replaced.',
    registers,
    collect() {
      this.reset();
      this.inc(sources.changeFeed().losses);
    },
  });
  new Gauge({
    name: 'hub_change_feed_age_seconds',
    help: 'Seconds since all changes in the database were known here; beyond Proxy.max_staleness nothing remembered is used.',
    registers,
    collect() {
      this.set(sources.changeFeed().ageSeconds);
    },
  });
  new Gauge({
    name: 'hub_open_websockets',
    help: 'WebSockets open through the gateway.',
    registers,
    collect() {
      this.set(sources.openWebSockets());
    },
  });
}
