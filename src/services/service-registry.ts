import { join } from 'node:path';
import type { Logger } from 'pino';
import { createPeriodic, type Periodic } from '../concurrency/periodic.ts';
import type { ServiceConfig } from '../config/config.ts';
import { Secret } from '../config/secret.ts';
import { randomToken } from '../crypto/random.ts';
import type { ServiceTokens } from '../oauth/tokens/service-tokens.ts';
import type { Clock } from '../processes/clock.ts';
import { hasOutputLog } from '../processes/output-log.ts';
import { measureUsage, type ProcessUsage } from '../processes/process-usage.ts';
import { createBoundedProbe } from '../processes/readiness-probe.ts';
import { createExternalService } from './external-service.ts';
import type { ManagedProcessStore } from './managed-process-store.ts';
import { createManagedService } from './managed-service.ts';
import { endOrphans } from './orphans.ts';
import type { RestartLimits } from './restart-policy.ts';
import { createService, type Service } from './service.ts';
import { compareServices, type ServiceDifference } from './service-difference.ts';
import { type HubLocation, serviceEnvironment } from './service-environment.ts';
import type { ServiceRoutes } from './service-routes.ts';
import type { ServiceStatus, SupervisedService } from './service-status.ts';

/** All services and how they are. Disposing of it stops the managed ones. */
export interface ServiceRegistry extends AsyncDisposable {
  /**
   * Ends what a former hub left behind, then starts every service in parallel. Resolves when all
   * have been begun, not when they are ready, and never rejects: no service keeps the hub from
   * starting. Call it when the hub listens, because services call back. When the signal is aborted
   * before they are begun, none is, and what is left of a former hub is for the next one to end.
   */
  start(signal?: AbortSignal): Promise<void>;
  services(): readonly Service[];
  find(name: string): Service | undefined;
  statuses(): readonly ServiceStatus[];
  statusOf(name: string): ServiceStatus | undefined;
  /** Restarts a service and forgets its earlier failures; false when there is none of that name. */
  restart(name: string): boolean;
  /** Changes to a new configuration, already checked; restarts only what changed. */
  applyConfig(configs: readonly ServiceConfig[]): Promise<ServiceDifference>;
}

export interface ServiceRegistryOptions extends HubLocation {
  /** Part of what marks the services' processes, so that other hubs leave them alone. */
  readonly hubId: string;
  readonly configs: readonly ServiceConfig[];
  /** Folder against which relative paths are resolved. */
  readonly directory: string;
  /** Absolute path of the folder for the services' output. */
  readonly logDirectory: string;
  /** `Hub.environment_prefixes`. */
  readonly prefixes: readonly string[];
  /** The hub's own environment. */
  readonly inherited: Readonly<Record<string, string | undefined>>;
  readonly routes: ServiceRoutes;
  readonly store: ManagedProcessStore;
  /** Told each service's token. */
  readonly tokens: Pick<ServiceTokens, 'set' | 'delete'>;
  /** Called after the set of services or their tokens changed. */
  readonly announceChange: () => void;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly limits?: RestartLimits;
  /** How often CPU and memory of the services are measured. */
  readonly usageIntervalMs?: number;
}

const parallelProbes = 16;

/** The services are known at once, and run after `start`. */
export function createServiceRegistry(options: ServiceRegistryOptions): ServiceRegistry {
  const { basePath, directory, logDirectory, routes, store, tokens, announceChange, log } = options;
  const probe = createBoundedProbe(parallelProbes);
  const generatedTokens = new Map<string, Secret>();
  const supervised = new Map<string, SupervisedService>();
  let usages: ReadonlyMap<number, ProcessUsage> = new Map();
  let sampling: Periodic | undefined;
  let changing: Promise<unknown> = Promise.resolve();
  let isDisposed = false;

  const logFileOf = (name: string): string => join(logDirectory, `service-${name}.log`);
  const tagOf = (name: string): string => `${logFileOf(name)}#${options.hubId}`;

  function tokenOf({ name, api_token, command }: ServiceConfig): Secret | undefined {
    if (api_token !== undefined || command === undefined) return api_token;
    // In memory only: it lives as long as this hub, and a reload does not change it.
    const token = generatedTokens.get(name) ?? new Secret(randomToken());
    generatedTokens.set(name, token);
    return token;
  }

  function toService(config: ServiceConfig): Service {
    return createService(config, { apiToken: tokenOf(config), basePath, directory });
  }

  function supervise(service: Service, takesOver: boolean): SupervisedService {
    const { launch } = service;
    const shared = { ...options, probe, takesOver };
    if (launch === undefined) return createExternalService({ ...shared, service });
    return createManagedService({
      ...shared,
      service: { ...service, launch },
      environmentFor: (current, user) => serviceEnvironment(current, { ...options, user }),
      logFile: logFileOf(service.name),
      tag: tagOf(service.name),
    });
  }

  function add(service: Service, takesOver = false): SupervisedService {
    const added = supervise(service, takesOver);
    supervised.set(service.name, added);
    setToken(service);
    if (service.url !== undefined && !takesOver)
      routes.close(service, 'it has not been started yet');
    return added;
  }

  function setToken({ name, apiToken }: Service): void {
    if (apiToken === undefined) tokens.delete(name);
    else tokens.set(name, apiToken.reveal());
  }

  async function remove(name: string): Promise<void> {
    const removed = supervised.get(name);
    if (removed === undefined) return;
    tokens.delete(name);
    generatedTokens.delete(name);
    supervised.delete(name);
    await removed.stop();
    if (removed.service.url !== undefined) routes.remove(removed.service);
  }

  async function replace(service: Service): Promise<void> {
    const former = supervised.get(service.name);
    // One that runs on its own and moves is served where it was until it answers where it is now.
    const isMove =
      former?.status(undefined).isReady === true &&
      [former.service, service].every(({ kind, url }) => kind === 'external' && url !== undefined);
    await former?.stop();
    if (former?.service.url !== undefined && !isMove) routes.remove(former.service);
    if (!isDisposed) add(service, isMove).start();
  }

  function update(service: Service): void {
    supervised.get(service.name)?.update(service);
    setToken(service);
  }

  async function change(configs: readonly ServiceConfig[]): Promise<ServiceDifference> {
    const before = [...supervised.values()].map((each) => each.service);
    const after = configs.map(toService);
    const byName = new Map(after.map((service) => [service.name, service]));
    const pick = (names: readonly string[]) => names.flatMap((name) => byName.get(name) ?? []);
    const difference = compareServices(before, after);

    for (const service of pick(difference.updated)) update(service);
    // A new service may take the port of one that goes, so those that go go first.
    await Promise.all(difference.removed.map(remove));
    await Promise.all(pick(difference.restarted).map(replace));
    for (const service of pick(difference.added)) add(service).start();
    announceChange();
    return difference;
  }

  async function sampleUsage(): Promise<void> {
    const pids = [...supervised.values()].flatMap((each) => each.status(undefined).pid ?? []);
    usages = await measureUsage(pids);
  }

  function statusOf(each: SupervisedService): ServiceStatus {
    const { pid } = each.status(undefined);
    return each.status(pid === undefined ? undefined : usages.get(pid));
  }

  for (const config of options.configs) add(toService(config));

  return {
    async start(signal) {
      const serviceNames = [...supervised.values()].flatMap(({ service }) =>
        service.kind === 'managed' && hasOutputLog(logFileOf(service.name)) ? [service.name] : [],
      );
      await endOrphans({ store, serviceNames, tagOf, log, signal, clock: options.clock });
      if (signal?.aborted) return;
      if (isDisposed) return;
      for (const each of supervised.values()) each.start();
      sampling = createPeriodic({
        intervalMs: options.usageIntervalMs ?? 10_000,
        work: sampleUsage,
        onError: (error) => log.warn({ err: error }, 'could not measure what services use'),
      });
    },
    services: () => [...supervised.values()].map((each) => each.service),
    find: (name) => supervised.get(name)?.service,
    statuses: () => [...supervised.values()].map(statusOf),
    statusOf(name) {
      const found = supervised.get(name);
      return found === undefined ? undefined : statusOf(found);
    },
    restart(name) {
      const found = supervised.get(name);
      found?.restart();
      return found !== undefined;
    },
    applyConfig(configs) {
      const changed = changing.then(() => change(configs));
      changing = changed.catch(() => undefined);
      return changed;
    },
    async [Symbol.asyncDispose]() {
      isDisposed = true;
      sampling?.[Symbol.dispose]();
      await Promise.all([...supervised.values()].map((each) => each.stop()));
      await changing;
    },
  };
}
