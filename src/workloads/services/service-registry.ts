import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { currentActor } from '../../platform/audit/actor.ts';
import { createPeriodic, type Periodic } from '../../platform/concurrency/periodic.ts';
import type { ServiceConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { text } from '../../platform/texts/text.ts';
import { createOutputFeed, type OutputSource } from '../../spawning/processes/output-feed.ts';
import { hasOutputLog } from '../../spawning/processes/output-log.ts';
import { measureUsage, type ProcessUsage } from '../../spawning/processes/process-usage.ts';
import { createBoundedProbe } from '../../spawning/processes/readiness-probe.ts';
import { createExternalService } from './external-service.ts';
import type { ManagedServiceOptions } from './managed-service.ts';
import { createOwnedService, type OwnedService } from './owned-service.ts';
import { isDisplaced, type RuntimeService } from './runtime-service.ts';
import { createService, type Service } from './service.ts';
import { compareServices, type ServiceDifference } from './service-difference.ts';
import { type HubLocation, serviceEnvironment } from './service-environment.ts';
import type { ServiceHost } from './service-owner-store.ts';
import {
  createServiceReconciler,
  type RemoteServices,
  type ServiceReconcilerDeps,
} from './service-reconciler.ts';
import type { PlacedStatus, SupervisedService } from './service-status.ts';
import type { ServiceStopStore } from './service-stop-store.ts';

/** All services and how they are. Disposing of it stops the managed ones. */
export interface ServiceRegistry extends AsyncDisposable {
  /**
   * Begins to watch the external services. Resolves when it is known of each how it is, but after a second at
   * most: visitors who come after that find those that run. `start` does so too where it has not been done.
   */
  watchExternal(): Promise<void>;
  /**
   * Ends what earlier runs left behind, then starts in parallel every service that no other instance runs.
   * Resolves when all have been begun, not when they are ready, and never rejects: no service keeps the hub
   * from starting. Call it when the hub listens, because services call back. When the signal is aborted
   * before they are begun, none is, and what is left of a former hub is for the next one to end.
   */
  start(signal?: AbortSignal): Promise<void>;
  services(): readonly Service[];
  find(name: string): Service | undefined;
  /** The configuration in force. */
  configs(): readonly ServiceConfig[];
  statuses(): readonly PlacedStatus[];
  statusOf(name: string): PlacedStatus | undefined;
  /**
   * Restarts a service, wherever it runs, and forgets its earlier failures; false when there is none of that
   * name. Throws `unavailable` when the instance that runs it does not answer.
   */
  restart(name: string): Promise<boolean>;
  /**
   * Stops a managed service, wherever it runs, until it is started by hand or its configuration changes: over
   * restarts of the hub, and whichever instance could take it. False when there is none of that name.
   */
  stopService(name: string): Promise<boolean>;
  /** Has a service that was stopped by hand run again. Otherwise as `stopService`. */
  startService(name: string): Promise<boolean>;
  /** What a service writes, wherever it runs; undefined when there is none of that name. */
  outputOf(name: string): OutputSource | undefined;
  /** Ends what an instance of this machine, which is gone, left of a service. */
  endLeft(name: string, tag: string): Promise<void>;
  /** Changes to a new configuration, already checked; restarts only what changed. */
  applyConfig(configs: readonly ServiceConfig[]): Promise<ServiceDifference>;
  /** Changes to other services beside those of the configuration; restarts only what changed. */
  applyRuntime(services: readonly RuntimeService[]): Promise<ServiceDifference>;
}

export interface ServiceRegistryOptions
  extends HubLocation,
    Pick<ManagedServiceOptions, 'routes' | 'store' | 'random' | 'limits'>,
    Pick<ServiceReconcilerDeps, 'owners' | 'isShared' | 'tokens' | 'log' | 'clock' | 'view'> {
  /** Part of what marks the services' processes, so that other hubs leave them alone. */
  readonly hubId: string;
  readonly configs: readonly ServiceConfig[];
  /** Added at run time. What the configuration has under the same name or client id wins. */
  readonly runtimeServices?: readonly RuntimeService[];
  /** Folder against which relative paths are resolved. */
  readonly directory: string;
  /** Absolute path of the folder for the services' output. */
  readonly logDirectory: string;
  /** `Hub.environment_prefixes`. */
  readonly prefixes: readonly string[];
  /** The hub's own environment. */
  readonly inherited: Readonly<Record<string, string | undefined>>;
  readonly stops: ServiceStopStore;
  /** The lease of this instance. */
  readonly lease: ServiceReconcilerDeps['lease'] & ServiceHost;
  readonly database: ServiceReconcilerDeps['database'] & Pick<HubDatabase, 'audit'>;
  /** How the instances that run services are asked for something. */
  readonly remote: RemoteServices;
  /** Called after the set of services or their tokens changed. */
  readonly announceChange: () => void;
  /** How often CPU and memory of the services are measured. */
  readonly usageIntervalMs?: number;
}

const parallelProbes = 16;
const firstAnswersMs = 1_000;
/** The output of external services, which is elsewhere. */
const nothingWritten = createOutputFeed();

/** The services are known at once, and run after `start`. */
export function createServiceRegistry(options: ServiceRegistryOptions): ServiceRegistry {
  const { basePath, directory, logDirectory, routes, store, tokens, announceChange, log } = options;
  const probe = createBoundedProbe(parallelProbes);
  const supervised = new Map<string, SupervisedService>();
  let usages: ReadonlyMap<number, ProcessUsage> = new Map();
  let sampling: Periodic | undefined;
  let changing: Promise<unknown> = Promise.resolve();
  let isDisposed = false;
  let watching: Promise<void> | undefined;
  const firstAnswers: Promise<void>[] = [];

  const logFileOf = (name: string): string => join(logDirectory, `service-${name}.log`);
  const tagPrefixOf = (name: string): string => `${logFileOf(name)}#${options.hubId}`;
  // Instances share the database, and so the id of the hub.
  const tagOf = (name: string): string => `${tagPrefixOf(name)}#${options.lease.id}`;
  const reconciler = createServiceReconciler({
    ...options,
    processes: store,
    services: () => [...supervised.values()].filter(isOwned),
    tagOf,
    tagPrefixOf,
    instanceOf: (tag) => tag.slice(tag.lastIndexOf('#') + 1),
    mayHaveRun: (name) => hasOutputLog(logFileOf(name)),
    usageOf: (pid) => (pid === undefined ? undefined : usages.get(pid)),
  });

  let configured = options.configs;
  let runtimeServices = options.runtimeServices ?? [];

  /** All there are to be. */
  function wanted(): Service[] {
    const place = { basePath, directory };
    const fixed = configured.map((config) =>
      createService(config, { apiToken: config.api_token, ...place }),
    );
    const free = runtimeServices.filter(({ definition }) => !isDisplaced(definition, configured));
    return [
      ...fixed,
      ...free.map(({ definition, tokenHash }) =>
        createService(definition, { apiToken: undefined, tokenHash, source: 'api', ...place }),
      ),
    ];
  }

  function supervise(service: Service, takesOver: boolean): SupervisedService {
    const { launch } = service;
    const shared = { ...options, probe, takesOver };
    if (launch === undefined) {
      const { promise, resolve: onFirstAnswer } = Promise.withResolvers<void>();
      if (watching === undefined) firstAnswers.push(promise);
      return createExternalService({ ...shared, service, onFirstAnswer });
    }
    return createOwnedService({
      ...shared,
      here: options.lease,
      mayStart: () => options.lease.isHeld(),
      onChange: () => reconciler.report(service.name),
      service: { ...service, launch },
      environmentFor: (current, user) => serviceEnvironment(current, { ...options, user }),
      logFile: logFileOf(service.name),
      tag: tagOf(service.name),
    });
  }

  function add(service: Service, takesOver = false): SupervisedService {
    const added = supervise(service, takesOver);
    supervised.set(service.name, added);
    if (isOwned(added)) tokens.delete(service.name);
    setToken(service);
    if (service.url !== undefined && !takesOver) routes.close(service);
    return added;
  }

  function setToken({ name, kind, apiToken, tokenHash }: Service): void {
    // One that its owner makes is the keeper's to set.
    if (apiToken !== undefined) tokens.set(name, apiToken.reveal());
    else if (tokenHash !== undefined) tokens.setHash(name, tokenHash);
    else if (kind === 'external') tokens.delete(name);
  }

  async function remove(name: string): Promise<void> {
    const removed = supervised.get(name);
    if (removed === undefined) return;
    tokens.delete(name);
    await end(removed);
    supervised.delete(name);
    routes.remove(removed.service);
  }

  async function end(each: SupervisedService): Promise<void> {
    if (isOwned(each)) await reconciler.release(each);
    else await each.stop();
  }

  async function replace(service: Service): Promise<void> {
    const former = supervised.get(service.name);
    const isGivenToken = service.apiToken === undefined;
    if (former !== undefined && isOwned(former) && former.isGivenToken === isGivenToken) {
      setToken(service);
      // It stays with its owner, who starts it with what has changed.
      if (service.launch !== undefined) return former.change(service);
    }
    // One that runs on its own and moves is served where it was until it answers where it is now.
    const isMove =
      former?.status(undefined).isReady === true &&
      [former.service, service].every(({ kind, url }) => kind === 'external' && url !== undefined);
    if (former !== undefined) await end(former);
    if (former !== undefined && !isMove) routes.remove(former.service);
    if (!isDisposed) add(service, isMove).start();
  }

  function update(service: Service): void {
    supervised.get(service.name)?.update(service);
    setToken(service);
  }

  async function change(): Promise<ServiceDifference> {
    // What an owner was given is not part of the configuration.
    const before = [...supervised.values()].map((each) =>
      isOwned(each) && each.isGivenToken ? { ...each.service, apiToken: undefined } : each.service,
    );
    const after = wanted();
    const byName = new Map(after.map((service) => [service.name, service]));
    const pick = (names: readonly string[]) => names.flatMap((name) => byName.get(name) ?? []);
    const difference = compareServices(before, after);

    for (const service of pick(difference.updated)) update(service);
    // A new service may take the port of one that goes, so those that go go first.
    await Promise.all(difference.removed.map(remove));
    await Promise.all(pick(difference.restarted).map(replace));
    for (const service of pick(difference.added)) add(service).start();
    reconciler.review();
    announceChange();
    return difference;
  }

  async function sampleUsage(): Promise<void> {
    const pids = [...supervised.values()].flatMap((each) => each.status(undefined).pid ?? []);
    usages = await measureUsage(pids);
  }

  function statusOf(each: SupervisedService): PlacedStatus {
    if (!isOwned(each))
      return {
        ...each.status(undefined),
        instance: undefined,
        isHere: true,
        stopped: undefined,
      };
    const { pid } = each.status(undefined);
    return each.placedStatus(pid === undefined || !each.isLocal ? undefined : usages.get(pid));
  }

  function watchExternal(): Promise<void> {
    watching ??= (async () => {
      for (const each of supervised.values()) if (!isOwned(each)) each.start();
      const patience = new AbortController();
      await Promise.race([
        Promise.all(firstAnswers),
        sleep(firstAnswersMs, undefined, { signal: patience.signal }).catch(() => undefined),
      ]);
      patience.abort();
    })();
    return watching;
  }

  function changeNext(prepare: () => void): Promise<ServiceDifference> {
    const changed = changing.then(() => {
      prepare();
      return change();
    });
    changing = changed.catch(() => undefined);
    return changed;
  }

  /** Throws `bad_request` for an external service. */
  function findOwned(name: string): OwnedService | undefined {
    const found = supervised.get(name);
    if (found === undefined || isOwned(found)) return found;
    throw new HubError('bad_request', text`The hub does not run the service ${name}.`, {
      hint: text`It is an external service: start and stop it where it runs.`,
    });
  }

  async function startService(name: string): Promise<boolean> {
    if (findOwned(name) === undefined) return false;
    await options.stops.remove(name);
    return true;
  }

  for (const service of wanted()) add(service);

  return {
    watchExternal,
    async start(signal) {
      await reconciler.start(signal);
      if (signal?.aborted) return;
      if (isDisposed) return;
      void watchExternal();
      sampling = createPeriodic({
        intervalMs: options.usageIntervalMs ?? 10_000,
        work: sampleUsage,
        onError: (error) => log.warn({ err: error }, 'could not measure what services use'),
      });
    },
    services: () => [...supervised.values()].map((each) => each.service),
    find: (name) => supervised.get(name)?.service,
    configs: () => configured,
    statuses: () => [...supervised.values()].map(statusOf),
    statusOf(name) {
      const found = supervised.get(name);
      return found === undefined ? undefined : statusOf(found);
    },
    async restart(name) {
      const found = supervised.get(name);
      if (found === undefined) return false;
      if (isOwned(found) && found.stopped !== undefined) return startService(name);
      if (!isOwned(found) || found.isLocal) found.restart();
      else if (found.host !== undefined) await options.remote.restart(found.host, name);
      // Of what another instance asks for, it has recorded who wanted it.
      if (currentActor() !== undefined) {
        const target = { kind: 'service', name } as const;
        await options.database.audit.recordAlone({ action: 'service.restart', target });
      }
      return true;
    },
    startService,
    async stopService(name) {
      const found = findOwned(name);
      if (found === undefined) return false;
      await options.stops.add(name, found.service.launch.digest);
      return true;
    },
    outputOf(name) {
      if (!supervised.has(name)) return undefined;
      // A service moves, and is another one after a change, while its output is followed.
      const feedOf = () => {
        const found = supervised.get(name);
        return found !== undefined && isOwned(found) ? found.feed : nothingWritten;
      };
      return {
        async read(...from) {
          const found = supervised.get(name);
          const host =
            found !== undefined && isOwned(found) && !found.isLocal ? found.host : undefined;
          if (host === undefined) return feedOf().read(...from);
          return options.remote.readOutput(host, name, ...from);
        },
        onMore: (listener) => feedOf().onMore(listener),
      };
    },
    endLeft: reconciler.endLeft,
    applyConfig: (configs) =>
      changeNext(() => {
        configured = configs;
      }),
    applyRuntime: (services) =>
      changeNext(() => {
        runtimeServices = services;
      }),
    async [Symbol.asyncDispose]() {
      isDisposed = true;
      sampling?.[Symbol.dispose]();
      await reconciler[Symbol.asyncDispose]();
      await Promise.all([...supervised.values()].map(end));
      await changing;
    },
  };
}

function isOwned(service: SupervisedService): service is OwnedService {
  return 'gain' in service;
}
