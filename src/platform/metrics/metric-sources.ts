import { Counter, Gauge, type Registry } from 'prom-client';

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
  droppedSpans(): number;
  /** Of the last attempt to get a certificate by ACME, if it failed; undefined also while the database does not tell. */
  acmeFailure(): Promise<{ readonly at: number } | undefined>;
  lastBackup(): Promise<{ readonly at?: number } | undefined>;
  /** How many keys sign ID tokens, by algorithm and what they do; undefined while the database does not tell. */
  signingKeys(): Promise<
    readonly { readonly algorithm: string; readonly state: string }[] | undefined
  >;
  signingKeyStates: Readonly<Record<'algorithms' | 'states', readonly string[]>>;
  /** That are served, and whether their files hold a newer one that cannot be used. */
  certificates(): readonly {
    readonly name: string;
    readonly notAfter: Date;
    readonly isCurrent: boolean;
  }[];
  /** How news of changes comes from the database. */
  changeFeed(): { readonly ageSeconds: number; readonly losses: number };
}

/** A figure, by its labels. */
type Labelled = readonly [Readonly<Record<string, string>>, number];

/** Registers what is read at each scrape. */
export function registerSources(sources: MetricSources, registers: Registry[]): void {
  type Value = number | undefined;

  /** One figure, and none while it is undefined. */
  const gauge = (name: string, help: string, read: () => Value | Promise<Value>) =>
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const value = await read();
        if (value === undefined) this.remove();
        else this.set(value);
      },
    });
  const labelledGauge = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly Labelled[] | Promise<readonly Labelled[]>,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        const figures = await read();
        this.reset();
        for (const [labels, value] of figures) this.set(labels, value);
      },
    });
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  const serviceGauge = (name: string, help: string, read: (service: ServiceFigures) => Value) =>
    labelledGauge(name, help, ['service'], () =>
      sources.services().flatMap((service) => {
        const value = read(service);
        return value === undefined ? [] : [[{ service: service.name }, value]];
      }),
    );

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

  labelledGauge(
    'hub_instance_info',
    'Name and version of the instance of the hub that is asked; always 1.',
    ['instance', 'version'],
    () => [[{ instance: sources.instance.name, version: sources.instance.version }, 1]],
  );
  labelledGauge(
    'hub_instances',
    'Instances of the hub that are there (up), and that are gone without a word (down).',
    ['state'],
    () => Object.entries(sources.instancesByState()).map(([state, count]) => [{ state }, count]),
  );
  gauge(
    'hub_maintenance',
    'Whether maintenance keeps servers from being started (1) or not (0).',
    async () => Number(await sources.isInMaintenance()),
  );
  gauge(
    'hub_gateways',
    'Gateway processes that follow the instance that is asked.',
    sources.gateways,
  );
  labelledGauge(
    'hub_service_state',
    'State of a service: 1 for the state it is in.',
    ['service', 'state'],
    () =>
      sources
        .services()
        .flatMap(({ name: service, state: current }) =>
          sources.serviceStates.map(
            (state) => [{ service, state }, Number(state === current)] as const,
          ),
        ),
  );
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
  labelledGauge('hub_servers', "Users' servers by state.", ['state'], () =>
    Object.entries(sources.serversByState()).map(([state, count]) => [{ state }, count]),
  );
  gauge(
    'hub_servers_cpu_cores',
    "Cores in use by users' servers of the instance that is asked, all together, as far as their spawners tell.",
    () => sources.serversTogether().cpuCores,
  );
  gauge(
    'hub_servers_memory_bytes',
    "Memory in use by users' servers of the instance that is asked, all together, as far as their spawners tell.",
    () => sources.serversTogether().memoryBytes,
  );
  gauge('hub_users', 'Users known to the hub.', sources.users);
  labelledGauge(
    'hub_storage_up',
    'Whether the database, and the store of expiring state, answer (1) or not (0).',
    ['storage'],
    async () =>
      Object.entries(await sources.storagesUp()).map(([storage, isUp]) => [
        { storage },
        Number(isUp),
      ]),
  );
  gauge(
    'hub_acme_last_failure_timestamp_seconds',
    'When the last attempt to get a certificate by ACME failed, in seconds since 1970; 0 where it did not.',
    async () => ((await sources.acmeFailure())?.at ?? 0) / 1000,
  );
  gauge(
    'hub_backup_last_success_timestamp_seconds',
    'When the last backup was done, by the hub or by a command, in seconds since 1970; 0 without one.',
    async () => ((await sources.lastBackup())?.at ?? 0) / 1000,
  );
  counter(
    'hub_log_lines_dropped_total',
    'Log lines lost because they were not read in time.',
    sources.droppedLogLines,
  );
  counter(
    'hub_trace_spans_dropped_total',
    'Spans of Hub.tracing that the collector did not get, those of gateway processes too.',
    sources.droppedSpans,
  );
  counter(
    'hub_change_feed_losses_total',
    'Times the connection that tells of changes in the database was found dead and replaced.',
    () => sources.changeFeed().losses,
  );
  gauge(
    'hub_change_feed_age_seconds',
    'Seconds since all changes in the database were known here; beyond Proxy.max_staleness nothing remembered is used.',
    () => sources.changeFeed().ageSeconds,
  );
  gauge('hub_open_websockets', 'WebSockets open through the gateway.', sources.openWebSockets);
  labelledGauge(
    'hub_certificate_not_after_seconds',
    'When a certificate that the hub serves ends, in seconds since 1970.',
    ['certificate'],
    () =>
      sources
        .certificates()
        .map(({ name, notAfter }) => [{ certificate: name }, notAfter.getTime() / 1000]),
  );
  labelledGauge(
    'hub_certificate_current',
    'Whether the newest version of a certificate is served (1), or cannot be used (0).',
    ['certificate'],
    () =>
      sources
        .certificates()
        .map(({ name, isCurrent }) => [{ certificate: name }, Number(isCurrent)]),
  );
  labelledGauge(
    'hub_signing_keys',
    'Keys that sign ID tokens, by what they do now; a lost one cannot be opened by any cookie secret.',
    ['algorithm', 'state'],
    async () => {
      const { algorithms, states } = sources.signingKeyStates;
      const keys = await sources.signingKeys();
      if (keys === undefined) return [];
      return algorithms.flatMap((algorithm) =>
        states.map((state) => {
          const found = keys.filter((key) => key.algorithm === algorithm && key.state === state);
          return [{ algorithm, state }, found.length] as const;
        }),
      );
    },
  );
}
