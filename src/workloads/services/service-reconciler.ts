import type { Logger } from 'pino';
import type { InstanceLease } from '../../cluster/instances/instance-lease.ts';
import type { ServiceTokens } from '../../identity/oauth/tokens/token-verifier.ts';
import { Secret } from '../../platform/config/secret.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomToken } from '../../platform/crypto/random.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Clock } from '../../spawning/processes/clock.ts';
import type { OutputPart, OutputSource } from '../../spawning/processes/output-feed.ts';
import { createSharedView, type ProcessView } from '../../spawning/processes/process-view.ts';
import type { ManagedProcessStore } from './managed-process-store.ts';
import type { OwnedService } from './owned-service.ts';
import { createServiceLeftovers } from './service-leftovers.ts';
import type { ServiceHost, ServiceOwner, ServiceOwnerStore } from './service-owner-store.ts';
import { readReport, withoutUsage, writeReport } from './service-report.ts';
import type { ServiceStop, ServiceStopStore } from './service-stop-store.ts';

/** Sees to it that each managed service runs once among all instances. */
export interface ServiceReconciler extends AsyncDisposable {
  /**
   * Ends what earlier runs left, takes the services that are free, and goes on doing so. Resolves when those
   * of the first round have been begun; never rejects.
   */
  start(signal?: AbortSignal): Promise<void>;
  /** Looks again who owns what, as after a reload. */
  review(): void;
  /** Tells the other instances how a service is that this one runs. */
  report(name: string): void;
  /** Ends what an instance of this machine, which is gone, left of a service. */
  endLeft(name: string, tag: string): Promise<void>;
  /** Ends a service that runs here and lets the others have it. */
  release(service: OwnedService): Promise<void>;
}

export interface ServiceReconcilerDeps {
  readonly owners: ServiceOwnerStore;
  readonly stops: Pick<ServiceStopStore, 'list' | 'forget'>;
  readonly processes: ManagedProcessStore;
  readonly lease: Pick<InstanceLease, 'id' | 'machineId' | 'isHeld' | 'onLost' | 'onRegained'>;
  readonly remote: Pick<RemoteServices, 'endLeft'>;
  /** Whether other instances may use the database; where none can, nothing has to be looked for. */
  readonly isShared: boolean;
  readonly database: Pick<HubDatabase, 'onChange' | 'announceChange'>;
  readonly tokens: Pick<ServiceTokens, 'set' | 'setHash' | 'delete'>;
  /** The managed services of the configuration in force. */
  readonly services: () => readonly OwnedService[];
  /** Tag of the processes that this run of the hub starts for a service. */
  readonly tagOf: (serviceName: string) => string;
  /** Id of the instance that starts the processes with a tag. */
  readonly instanceOf: (tag: string) => string;
  /** What the tags of all runs in the same folder begin with. */
  readonly tagPrefixOf: (serviceName: string) => string;
  /** Whether an earlier run in the same folder may have begun it. */
  readonly mayHaveRun: (serviceName: string) => boolean;
  readonly usageOf: (pid: number | undefined) => ReturnType<OwnedService['status']>['usage'];
  readonly log: Logger;
  readonly clock?: Clock;
  readonly view?: ProcessView;
}

/** Asks other instances. All throw `unavailable` when one does not answer or has the service no more. */
export interface RemoteServices {
  restart(host: ServiceHost, name: string): Promise<void>;
  readOutput(
    host: ServiceHost,
    name: string,
    ...from: Parameters<OutputSource['read']>
  ): Promise<OutputPart>;
  /** Has an instance on the machine of another one, which is gone, end what that left of a service. */
  endLeft(host: ServiceHost, name: string, tag: string): Promise<void>;
}

/** How often services without an owner are looked for, if no change is told before. */
const roundMs = 2_000;
/** After the end of a lease, so that the database surely sees it as ended. */
const afterLeaseMs = 20;
/** How often the others hear what a service uses. */
const usageReportMs = 30_000;
/** The lease is lost five seconds before others may take over: by then all has to be over. */
const lostGraceMs = 1_500;

export function createServiceReconciler(deps: ServiceReconcilerDeps): ServiceReconciler {
  const { owners, lease, database, tokens, log } = deps;
  // Those of one instance that is gone are taken over all at once: each look serves all of them.
  const { view = createSharedView({ restFactor: 1 }) } = deps;
  const taking = new Map<string, Promise<void>>();
  const reporting = new Map<string, Promise<void>>();
  /** What changed while it was being told. */
  const isStale = new Set<string>();
  /** What was told last of the services that run here, and when. */
  const reported = new Map<string, { readonly text: string; readonly atMs: number }>();
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isDue = false;
  let isFailing = false;
  /** Services that are being stopped because they are to stay so. */
  const stoppingByHand = new Map<string, Promise<void>>();
  const leftovers = createServiceLeftovers({
    ...deps,
    endLeftRemote: deps.remote.endLeft,
    names: () => deps.services().map(({ service }) => service.name),
    signal: stopping.signal,
    view,
  });

  const announce = () => database.announceChange({ kind: 'services_changed' });

  async function takeUp(service: OwnedService, former: ServiceOwner | undefined) {
    const { name } = service.service;
    const token = service.isGivenToken ? new Secret(randomToken()) : undefined;
    const claim = await owners.claim(name, token && hashSecret(token.reveal()));
    if (claim === undefined) return;
    const { formerTag } = claim;
    if (former !== undefined && former.instanceId !== lease.id) {
      log.warn({ service: name, from: former.host?.name }, 'service of lost instance taken over');
    }
    // Not the former owner: that may have died before it began anything.
    const starter =
      formerTag === undefined ? undefined : await owners.findHost(deps.instanceOf(formerTag));
    const far = starter?.machineId === lease.machineId ? undefined : starter;
    if (far !== undefined && formerTag !== undefined) await leftovers.endAt(far, name, formerTag);
    await leftovers.end(name, formerTag === undefined || far !== undefined ? [] : [formerTag], far);
    // Ending what was left takes its time, in which much may have happened.
    const isStillMine = !stopping.signal.aborted && lease.isHeld();
    const isWanted = deps.services().includes(service) && service.stopped === undefined;
    if (!isStillMine || !isWanted) {
      await owners.release(name);
      announce();
      return;
    }
    if (!(await owners.mark(name, deps.tagOf(name)))) return;
    if (token !== undefined) tokens.set(name, token.reveal());
    service.gain(token);
    report(name);
  }

  function take(service: OwnedService, former: ServiceOwner | undefined): void {
    const { name } = service.service;
    if (taking.has(name)) return;
    const done = takeUp(service, former)
      .catch((error: unknown) =>
        log.warn({ service: name, err: error }, 'could not take a service'),
      )
      .finally(() => {
        taking.delete(name);
        if (service.stopped !== undefined) review();
      });
    taking.set(name, done);
  }

  /** Goes by who owns a service, and by whether it is to stay stopped. */
  function attend(
    service: OwnedService,
    owner: ServiceOwner | undefined,
    stop: ServiceStop | undefined,
  ): void {
    const { name } = service.service;
    const isMine = owner?.instanceId === lease.id;
    service.noteStop(stop);
    if (service.isLocal) {
      if (taking.has(name)) return;
      if (isMine) {
        if (service.stopped !== undefined) stopByHand(service);
        return;
      }
      log.warn({ service: name }, 'service taken over by another instance, ending it here');
      void surrender(service);
      return;
    }
    if (owner?.host !== undefined && !isMine && owner.leaseLeftMs > 0) {
      const { tokenHash } = owner;
      if (tokenHash !== undefined && service.isGivenToken) tokens.setHash(name, tokenHash);
      service.follow(owner.host, readReport(owner.status));
      return;
    }
    if (taking.has(name)) return;
    if (service.isGivenToken) tokens.delete(name);
    service.follow(undefined, undefined);
    if (service.stopped !== undefined || stoppingByHand.has(name)) return;
    if (!lease.isHeld() || stopping.signal.aborted) return;
    // It is another service by now than the one that was to stay stopped.
    if (stop !== undefined) void deps.stops.forget(stop).catch(() => undefined);
    take(service, owner);
  }

  /** Ends a service that runs here, and leaves it to no one. */
  function stopByHand(service: OwnedService): void {
    const { name } = service.service;
    if (stoppingByHand.has(name)) return;
    const done = endAndRelease(service)
      .catch((error: unknown) =>
        log.error({ service: name, err: error }, 'service could not be stopped'),
      )
      .finally(() => {
        stoppingByHand.delete(name);
        review();
      });
    stoppingByHand.set(name, done);
  }

  async function endAndRelease(service: OwnedService): Promise<void> {
    const { name } = service.service;
    log.info({ service: name, by: service.stopped?.by }, 'service stopped manually');
    await service.lose();
    await reporting.get(name);
    reported.delete(name);
    if (service.isGivenToken) tokens.delete(name);
    await owners.release(name);
    announce();
  }

  async function surrender(service: OwnedService): Promise<void> {
    const { name } = service.service;
    reported.delete(name);
    try {
      await service.lose({ maxGraceMs: lostGraceMs });
      if (service.isGivenToken) tokens.delete(name);
    } catch (error) {
      log.error({ service: name, err: error }, 'service could not be ended');
    }
    review();
  }

  async function round(): Promise<void> {
    const [rows, stops] = await Promise.all([owners.list(), deps.stops.list()]);
    const byName = new Map(rows.map((row) => [row.name, row]));
    const stopByName = new Map(stops.map((stop) => [stop.name, stop]));
    const services = deps.services();
    for (const service of services) {
      const { name } = service.service;
      attend(service, byName.get(name), stopByName.get(name));
    }
    for (const service of services) {
      const last = reported.get(service.service.name);
      if (!service.isLocal) continue;
      if (last === undefined || performance.now() - last.atMs > usageReportMs) {
        report(service.service.name);
      }
    }
    const names = new Set(services.map(({ service }) => service.name));
    const leases = rows
      .filter(({ name, instanceId }) => names.has(name) && instanceId !== lease.id)
      .map(({ leaseLeftMs }) => leaseLeftMs)
      .filter((leftMs) => leftMs > 0);
    if (!deps.isShared) return;
    plan(Math.min(roundMs, ...leases.map((leftMs) => leftMs + afterLeaseMs)));
  }

  function plan(delayMs: number): void {
    clearTimeout(timer);
    if (stopping.signal.aborted) return;
    timer = setTimeout(review, delayMs).unref();
  }

  async function runRound(): Promise<void> {
    try {
      do {
        isDue = false;
        await round();
      } while (isDue && !stopping.signal.aborted);
      isFailing = false;
    } catch (error) {
      log[isFailing ? 'debug' : 'warn'](
        { err: error },
        'could not see which instance has which service',
      );
      isFailing = true;
      plan(roundMs);
    } finally {
      running = undefined;
    }
  }

  function review(): void {
    if (stopping.signal.aborted) return;
    isDue = true;
    running ??= runRound();
  }

  function report(name: string): void {
    if (reporting.has(name)) {
      isStale.add(name);
      return;
    }
    const done = writeDownAll(name)
      .catch((error: unknown) => {
        // The next round tries again.
        reported.delete(name);
        log.debug({ service: name, err: error }, 'could not publish service status');
      })
      .finally(() => reporting.delete(name));
    reporting.set(name, done);
  }

  async function writeDownAll(name: string): Promise<void> {
    do {
      isStale.delete(name);
      await writeDown(name);
    } while (isStale.has(name));
  }

  async function writeDown(name: string): Promise<void> {
    const service = deps.services().find((each) => each.service.name === name);
    if (service === undefined || !service.isLocal) return;
    const { pid } = service.status(undefined);
    const text = writeReport(service.status(deps.usageOf(pid)));
    const last = reported.get(name);
    const isNews = last === undefined || withoutUsage(last.text) !== withoutUsage(text);
    const atMs = performance.now();
    if (!isNews && atMs - last.atMs < usageReportMs) return;
    if (!(await owners.report(name, text))) {
      review();
      return;
    }
    reported.set(name, { text, atMs });
    if (isNews) announce();
  }

  async function startAll(): Promise<void> {
    await Promise.all([leftovers.endForgotten(), leftovers.endOwn()]).catch((error: unknown) =>
      log.warn({ err: error }, 'could not clean up after a former hub'),
    );
    review();
    await running;
    await Promise.all(taking.values());
  }

  const stopListening = [
    database.onChange(review, ['services_changed', 'instances_changed']),
    lease.onLost(() => {
      for (const service of deps.services()) {
        if (service.isLocal) void surrender(service);
      }
    }),
    lease.onRegained(review),
  ];

  return {
    async start(signal) {
      const { promise: isAborted, resolve: abort } = Promise.withResolvers<void>();
      function onAbort(): void {
        stopping.abort();
        abort();
      }
      signal?.addEventListener('abort', onAbort);
      if (signal?.aborted) onAbort();
      await Promise.race([startAll(), isAborted]);
      signal?.removeEventListener('abort', onAbort);
    },
    review,
    report,
    async endLeft(name, tag) {
      if (tag !== deps.tagOf(name)) await leftovers.end(name, [tag]);
    },
    async release(service) {
      const { name } = service.service;
      await taking.get(name);
      const wasLocal = service.isLocal;
      await service.stop();
      if (!wasLocal) return;
      await reporting.get(name);
      reported.delete(name);
      try {
        await owners.release(name);
        announce();
      } catch (error) {
        log.warn({ service: name, err: error }, 'could not hand service over');
      }
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      clearTimeout(timer);
      for (const stop of stopListening) stop();
      await running;
      await Promise.all([...taking.values(), ...stoppingByHand.values()]);
    },
  };
}
