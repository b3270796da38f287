import { isOfOneMachine } from '../../platform/config/bind-address.ts';
import type { Secret } from '../../platform/config/secret.ts';
import { text } from '../../platform/texts/text.ts';
import { createOutputFeed, type OutputFeed } from '../../spawning/processes/output-feed.ts';
import type { ManagedServiceOptions } from './managed-service.ts';
import { createManagedService } from './managed-service.ts';
import type { Service, ServiceLaunch } from './service.ts';
import type { ServiceHost } from './service-owner-store.ts';
import type { ServiceReport } from './service-report.ts';
import type { ServiceRoutes } from './service-routes.ts';
import type { PlacedStatus, ServiceExit, SupervisedService } from './service-status.ts';
import type { ServiceStop } from './service-stop-store.ts';

/** A service with a command: run here, or followed where another instance runs it. */
export interface OwnedService extends SupervisedService {
  readonly service: Service & { readonly launch: ServiceLaunch };
  /** Whether each owner makes a new token for it; else it is in the configuration. */
  readonly isGivenToken: boolean;
  /** Whether its process is this instance's, also while that ends. */
  readonly isLocal: boolean;
  /** Runs it here from now on. `token` is what its copy is given where the configuration has none. */
  gain(token: Secret | undefined): void;
  /** Ends what runs here, for another instance to run it. */
  lose(options?: { readonly maxGraceMs?: number }): Promise<void>;
  /** The last lines of what ran here last. */
  readonly feed: OutputFeed;
  /** Goes by what the instance tells that runs it; undefined while none does. */
  follow(host: ServiceHost | undefined, report: ServiceReport | undefined): void;
  /** Takes over changes that need another process. */
  change(service: Service): Promise<void>;
  /** Goes by what is noted of a stop by hand. */
  noteStop(stop: ServiceStop | undefined): void;
  /** The stop by hand that is in force; one of another definition of the service is not. */
  readonly stopped: ServiceStop | undefined;
  placedStatus(usage: PlacedStatus['usage']): PlacedStatus;
  /** Instance that runs it, as far as this one knows. */
  readonly host: ServiceHost | undefined;
}

/** `here` is this instance. */
export function createOwnedService(
  options: Omit<ManagedServiceOptions, 'service'> & {
    readonly service: Service & { readonly launch: ServiceLaunch };
    readonly here: ServiceHost;
    readonly routes: ServiceRoutes;
  },
): OwnedService {
  const { here, routes } = options;
  let { service } = options;
  const feed = createOutputFeed();
  let local: SupervisedService | undefined;
  let token: Secret | undefined;
  let host: ServiceHost | undefined;
  let report: ServiceReport | undefined;
  let isEnded = false;
  let stop: ServiceStop | undefined;
  /** How the last run here ended, and how many came before it. */
  let last: { readonly lastExit: ServiceExit | undefined; readonly restarts: number } | undefined;

  const withToken = (plain: Service & { readonly launch: ServiceLaunch }) => ({
    ...plain,
    apiToken: plain.apiToken ?? token,
  });

  function begin(): void {
    local = createManagedService({ ...options, feed, service: withToken(service) });
    local.start();
  }

  function show(): void {
    if (service.url === undefined) return;
    const isReached = host !== undefined && report?.isReady === true;
    if (!isReached) {
      routes.close(service);
      return;
    }
    const isRemote = host?.machineId !== here.machineId && isOfOneMachine(service.url);
    routes.open(service, isRemote ? host?.id : undefined);
  }

  async function end(stopOptions?: { readonly maxGraceMs?: number }): Promise<void> {
    const ending = local;
    await ending?.stop(stopOptions);
    last = ending?.status(undefined) ?? last;
    // How it ended is still to be seen after that.
    if (local === ending && !isEnded) local = undefined;
  }

  const stopInForce = () => (stop?.digest === service.launch.digest ? stop : undefined);

  const placedStatus: OwnedService['placedStatus'] = (usage) => {
    const stopped = stopInForce();
    if (local !== undefined) {
      return { ...local.status(usage), instance: here.name, isHere: true, stopped };
    }
    const unreported = host === undefined ? last : undefined;
    return {
      name: service.name,
      kind: 'managed',
      state: report?.state ?? 'stopped',
      isReady: report?.isReady ?? false,
      since: report?.since ?? stopped?.at,
      pid: report?.pid,
      startedAt: report?.startedAt,
      uptimeMs: undefined,
      nextStartAt: report?.nextStartAt,
      restarts: report?.restarts ?? unreported?.restarts ?? 0,
      lastExit: report?.lastExit ?? unreported?.lastExit,
      lastError:
        host === undefined && stopped === undefined
          ? text`no instance of the hub runs it`
          : report?.lastError,
      usage: report?.usage,
      instance: host?.name,
      isHere: false,
      stopped,
    };
  };

  return {
    get service() {
      return withToken(service);
    },
    get isGivenToken() {
      return service.apiToken === undefined;
    },
    get isLocal() {
      return local !== undefined;
    },
    get host() {
      return local === undefined ? host : here;
    },
    feed,
    noteStop(noted) {
      stop = noted;
    },
    get stopped() {
      return stopInForce();
    },
    start() {
      show();
    },
    gain(given) {
      if (isEnded || local !== undefined) return;
      token = given;
      host = undefined;
      report = undefined;
      begin();
    },
    async lose(stopOptions) {
      await end(stopOptions);
      token = undefined;
      if (!isEnded) show();
    },
    follow(nextHost, nextReport) {
      if (local !== undefined || isEnded) return;
      host = nextHost;
      report = nextHost === undefined ? undefined : nextReport;
      show();
    },
    async change(changed) {
      if (changed.launch === undefined) throw new TypeError('a service without a command');
      const wasLocal = local !== undefined;
      await end();
      if (service.url !== undefined && service.prefix !== changed.prefix) routes.remove(service);
      service = { ...changed, launch: changed.launch };
      if (isEnded) return;
      if (wasLocal) begin();
      else show();
    },
    async stop(stopOptions) {
      isEnded = true;
      await end(stopOptions);
    },
    restart: () => local?.restart(),
    update(changed) {
      if (changed.launch === undefined) return;
      service = { ...changed, launch: changed.launch };
      if (local === undefined) show();
      else local.update(withToken(service));
    },
    status: placedStatus,
    placedStatus,
  };
}
