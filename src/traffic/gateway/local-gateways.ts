import { kill } from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { StartupError } from '../../platform/errors.ts';
import { isSameProcess, type ProcessIdentity } from '../../platform/process-table/process-table.ts';
import type { GatewayFeed } from './feed.ts';
import type { GatewayProcessStore } from './gateway-process-store.ts';

/** The gateway processes of a hub (`Hub.gateways`). */
export interface LocalGateways extends AsyncDisposable {
  /** Whether any that an earlier hub started is still there. */
  hasLeftovers(): Promise<boolean>;
  /**
   * Keeps those that fit, replaces the others one by one and starts what is missing; resolves when all take
   * connections. From then on one that dies is started again. Throws StartupError when one cannot be started.
   */
  start(signal: AbortSignal | undefined): Promise<void>;
  /** Ends all. */
  end(): Promise<void>;
}

/** Starts one; resolves when it takes connections. Throws StartupError when it does not. */
export type StartGatewayProcess = (signal: AbortSignal | undefined) => Promise<ProcessIdentity>;

/** How long those of an earlier hub have to find this one. */
const adoptionMs = 10_000;
const pollMs = 100;
const watchMs = 1_000;
const maxBackoffMs = 30_000;
/** One that lived for so long did not die of how it was started. */
const healthyMs = 60_000;

export function createLocalGateways(deps: {
  /** `Hub.gateways` */
  readonly count: number;
  readonly startProcess: StartGatewayProcess;
  readonly nameOf: (identity: ProcessIdentity) => string;
  readonly version: string;
  readonly feed: Pick<GatewayFeed, 'following' | 'retire' | 'settingsDigest'>;
  readonly store: GatewayProcessStore;
  readonly endGraceMs: number;
  readonly log: Logger;
}): LocalGateways {
  const { count, startProcess, nameOf, version, feed, store, log } = deps;
  const running = new Map<number, { readonly identity: ProcessIdentity; readonly atMs: number }>();
  /** Those of earlier hubs that end with their last connection. */
  const retired: ProcessIdentity[] = [];
  let backoffMs = watchMs;
  let notBeforeMs = 0;
  let watching: AsyncDisposable | undefined;
  let isEnding = false;

  const findFollowing = (identity: ProcessIdentity) =>
    feed.following().find(({ name, isLocal }) => isLocal && name === nameOf(identity));

  async function startIn(slot: number, signal: AbortSignal | undefined): Promise<void> {
    const identity = await startProcess(signal);
    running.set(slot, { identity, atMs: performance.now() });
    await store.record(slot, identity);
    log.info({ gateway: nameOf(identity), pid: identity.pid }, 'gateway started');
  }

  /** Whether one of an earlier hub has come back and is such as this hub would start it. */
  async function fits(identity: ProcessIdentity, signal?: AbortSignal): Promise<boolean> {
    const giveUpAtMs = performance.now() + adoptionMs;
    while (isSameProcess(identity) && performance.now() < giveUpAtMs) {
      const found = findFollowing(identity);
      if (found !== undefined) {
        return found.version === version && found.settings === feed.settingsDigest;
      }
      await delay(pollMs, undefined, { ref: false });
      signal?.throwIfAborted();
    }
    return false;
  }

  async function endProcess(identity: ProcessIdentity): Promise<void> {
    const giveUpAtMs = performance.now() + deps.endGraceMs;
    sendTo(identity, 'SIGTERM');
    while (isSameProcess(identity)) {
      if (performance.now() > giveUpAtMs) sendTo(identity, 'SIGKILL');
      await delay(pollMs);
    }
  }

  async function replaceDead(): Promise<void> {
    if (isEnding) return;
    for (const [slot, { identity, atMs }] of running) {
      if (isSameProcess(identity)) continue;
      if (performance.now() < notBeforeMs) continue;
      log.warn({ gateway: nameOf(identity) }, 'gateway exited unexpectedly, restarting it');
      backoffMs =
        performance.now() - atMs > healthyMs ? watchMs : Math.min(backoffMs * 2, maxBackoffMs);
      notBeforeMs = performance.now() + backoffMs;
      await startIn(slot, undefined);
    }
  }

  return {
    hasLeftovers: async () => (await store.list()).some(({ identity }) => isSameProcess(identity)),

    async start(signal) {
      const earlier = new Map(
        (await store.list())
          .filter(({ identity }) => isSameProcess(identity))
          .map(({ slot, identity }) => [slot, identity]),
      );
      for (let slot = 0; slot < count; slot += 1) {
        const former = earlier.get(slot);
        if (former !== undefined && (await fits(former, signal))) {
          running.set(slot, { identity: former, atMs: performance.now() });
          log.info({ gateway: nameOf(former) }, 'gateway of earlier hub kept running');
          continue;
        }
        await startIn(slot, signal);
        if (former !== undefined) retire(former);
      }
      for (const [slot, former] of earlier) {
        if (slot < count) continue;
        retire(former);
        await store.forget(slot);
      }
      watching = createPeriodic({
        intervalMs: watchMs,
        work: replaceDead,
        onError: (error) => log.error({ err: error }, 'gateway could not be started'),
      });
    },

    async end() {
      isEnding = true;
      await watching?.[Symbol.asyncDispose]();
      await Promise.all([
        ...retired.map(endProcess),
        ...[...running].map(async ([slot, { identity }]) => {
          await endProcess(identity);
          await store.forget(slot);
        }),
      ]);
      running.clear();
    },

    async [Symbol.asyncDispose]() {
      isEnding = true;
      await watching?.[Symbol.asyncDispose]();
    },
  };

  /** It drains where it can hear this, and ends at once where it cannot. */
  function retire(identity: ProcessIdentity): void {
    log.info({ gateway: nameOf(identity) }, 'gateway of earlier hub replaced');
    retired.push(identity);
    if (findFollowing(identity) === undefined) sendTo(identity, 'SIGTERM');
    else feed.retire(nameOf(identity));
  }
}

function sendTo(identity: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (!isSameProcess(identity)) return;
  try {
    kill(identity.pid, signal);
  } catch {
    // It has ended in the meantime.
  }
}

/** The failure of a gateway that did not begin to take connections. */
export function notStarted(reason: string): StartupError {
  return new StartupError(`a gateway could not be started: ${reason}`);
}
