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

/** Registers what is read at each scrape. */
export function registerSources(sources: MetricSources, registers: Registry[]): void {
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
  new Gauge({
    name: 'hub_acme_last_failure_timestamp_seconds',
    help: 'When the last attempt to get a certificate by ACME failed, in seconds since 1970; 0 where it did not.',
    registers,
    async collect() {
      this.set(((await sources.acmeFailure())?.at ?? 0) / 1000);
    },
  });
  new Gauge({
    name: 'hub_backup_last_success_timestamp_seconds',
    help: 'When the last backup was done, by the hub or by a command, in seconds since 1970; 0 without one.',
    registers,
    async collect() {
      this.set(((await sources.lastBackup())?.at ?? 0) / 1000);
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
    name: 'hub_trace_spans_dropped_total',
    help: 'Spans of Hub.tracing that the collector did not get, those of gateway processes too.',
    registers,
    collect() {
      this.reset();
      this.inc(sources.droppedSpans());
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
  new Gauge({
    name: 'hub_certificate_not_after_seconds',
    help: 'When a certificate that the hub serves ends, in seconds since 1970.',
    labelNames: ['certificate'],
    registers,
    collect() {
      this.reset();
      for (const { name, notAfter } of sources.certificates()) {
        this.set({ certificate: name }, notAfter.getTime() / 1000);
      }
    },
  });
  new Gauge({
    name: 'hub_certificate_current',
    help: 'Whether the newest version of a certificate is served (1), or cannot be used (0).',
    labelNames: ['certificate'],
    registers,
    collect() {
      this.reset();
      for (const { name, isCurrent } of sources.certificates()) {
        this.set({ certificate: name }, Number(isCurrent));
      }
    },
  });

  new Gauge({
    name: 'hub_signing_keys',
    help: 'Keys that sign ID tokens, by what they do now; a lost one cannot be opened by any cookie secret.',
    labelNames: ['algorithm', 'state'],
    registers,
    async collect() {
      this.reset();
      const { algorithms, states } = sources.signingKeyStates;
      const keys = await sources.signingKeys();
      if (keys === undefined) return;
      for (const algorithm of algorithms)
        for (const state of states) this.set({ algorithm, state }, 0);
      for (const { algorithm, state } of keys) this.inc({ algorithm, state });
    },
  });
}
