import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { InstanceLease } from '../../cluster/instances/instance-lease.ts';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { isOfOneMachine } from '../../platform/config/bind-address.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Server } from './server.ts';
import type { ServerOwnership, TakenServer } from './server-ownership-store.ts';
import type { RemoteOwner, ServerRoutes } from './server-routes.ts';
import type { ServerStore } from './server-store.ts';
import type { ServerUnit } from './server-unit.ts';

/**
 * Keeps what this instance does in step with what the database says: routes to the servers of other
 * instances, stops asked for elsewhere, servers that others took over, and those of instances that are gone.
 */
export interface ServerSync extends AsyncDisposable {
  /** Compares now, however little seems to have changed. Never throws. */
  run(): Promise<void>;
  /** Compares for a visitor, once for all who ask within a fifth of a second. Never throws. */
  refresh(): Promise<void>;
  /** Takes over what instances without a lease left within reach, and does work with it in their place. */
  undisturbed<Result>(work: () => Promise<Result>): Promise<Result>;
}

const intervalMs = 2_000;
/** Between two comparisons, however much is announced. */
const minIntervalMs = 200;
const takenAtOnce = 50;
const parallelTakeovers = 16;

export function createServerSync(deps: {
  readonly database: Pick<HubDatabase, 'onChange'>;
  readonly store: Pick<ServerStore, 'listActive'>;
  readonly ownership: ServerOwnership;
  readonly instance: Pick<InstanceLease, 'machineId' | 'isHeld' | 'onRegained'>;
  readonly routes: Pick<ServerRoutes, 'routeToRemote'>;
  /** False where no other process can come: then only the command line changes servers. */
  readonly isShared: boolean;
  /** Whether there is a spawner that can go on with the servers of others. */
  readonly canTakeOver: boolean;
  readonly units: () => Iterable<ServerUnit>;
  /** Goes on with a server that was another instance's. */
  readonly goOn: (server: Server) => Promise<void>;
  readonly log: Logger;
}): ServerSync {
  const { database, store, ownership, instance, routes, isShared, log } = deps;
  const takingOver = createLimiter(1);
  let seen: string | undefined;
  /** When the survey was asked for that is `seen`, by the monotonic clock. */
  let seenAtMs = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  /** What an earlier run of this instance left comes first. */
  let hasBegun = false;
  let isClosed = false;
  let startedAtMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let refreshing: Promise<void> | undefined;

  const periodic = createPeriodic({
    intervalMs: isShared ? intervalMs : 2 ** 30,
    async work() {
      startedAtMs = performance.now();
      await compare();
      isFailing = false;
    },
    onError(error) {
      seen = undefined;
      // Said once; it is tried again every two seconds.
      if (!isFailing) log.warn({ err: error }, 'could not compare the servers with the database');
      isFailing = true;
    },
  });

  async function compare(): Promise<void> {
    const sentAtMs = performance.now();
    const { signature, takeable } = await ownership.survey();
    if (signature !== seen || hasNewUnit()) {
      const active = await store.listActive();
      const servers = new Map(active.map((server) => [server.id, server]));
      if (isClosed) return;
      const isWhole = compareUnits(servers, sentAtMs);
      routes.routeToRemote(remote(active));
      // Not of the survey: an instance may have been away for the moment between the two.
      seen = isWhole ? ownership.signatureOf(active) : undefined;
      seenAtMs = sentAtMs;
    }
    if (takeable > 0 && hasBegun) await takingOver(() => takeOver(deps.goOn));
  }

  /** Whether a server began here since the last comparison: should its row be gone already, all rows look as before. */
  function hasNewUnit(): boolean {
    for (const { ownedSinceMs } of deps.units()) {
      if (ownedSinceMs !== undefined && ownedSinceMs >= seenAtMs) return true;
    }
    return false;
  }

  /** False when something was too new to be compared. */
  function compareUnits(servers: ReadonlyMap<string, Server>, sentAtMs: number): boolean {
    let isWhole = true;
    for (const unit of deps.units()) {
      if (unit.state !== 'running' && unit.state !== 'starting') continue;
      if (unit.ownedSinceMs === undefined || unit.ownedSinceMs >= sentAtMs) {
        isWhole = false;
        continue;
      }
      const server = servers.get(unit.server.id);
      if (server?.instance?.id !== ownership.instanceId) unit.partWith(server?.spawnerState);
      else if (server.state === 'stopping') void unit.stop();
    }
    return isWhole;
  }

  function* remote(servers: Iterable<Server>): Iterable<readonly [Server, RemoteOwner]> {
    for (const server of servers) {
      const { state, url, instance: owner } = server;
      if (state !== 'running' || url === undefined) continue;
      if (owner?.id === ownership.instanceId) continue;
      const machineId = owner?.machineId ?? server.machineId;
      const isReached = machineId === instance.machineId || !isOfOneMachine(url);
      // What runs on beside a hub that stops or is gone is about to be taken over.
      if (owner?.isLive !== true && !(isReached && deps.canTakeOver)) continue;
      yield [server, { url, via: isReached ? undefined : owner?.id }];
    }
  }

  async function takeOver(goOn: (server: Server) => Promise<void>): Promise<void> {
    if (!deps.canTakeOver) return;
    let taken: TakenServer[];
    do {
      if (isClosed || !instance.isHeld()) return;
      taken = await ownership.takeOver({ limit: takenAtOnce });
      seen = undefined;
      await forEachAtOnce(parallelTakeovers, taken, async ({ server, from }) => {
        log.warn(
          {
            user: server.userName,
            server: server.name,
            from: from?.name,
            leaseUntil: from?.leaseUntil,
            state: server.state,
          },
          'server taken over',
        );
        await goOn(server);
      });
    } while (taken.length === takenAtOnce);
  }

  const restMs = () => Math.max(0, startedAtMs + minIntervalMs - performance.now());

  function runSoon(): void {
    if (timer !== undefined || isClosed) return;
    timer = setTimeout(() => {
      timer = undefined;
      void periodic.run();
    }, restMs());
    timer.unref();
  }

  async function refresh(): Promise<void> {
    await sleep(restMs());
    refreshing = undefined;
    if (!isClosed) await periodic.run();
  }

  using started = new DisposableStack();
  started.defer(
    // After a loss the next comparison of a database that is shared comes soon enough.
    database.onChange(runSoon, isShared ? ['server_changed', 'instances_changed'] : ['all']),
  );
  started.defer(
    instance.onRegained(() => {
      seen = undefined;
      runSoon();
    }),
  );
  const stack = started.move();

  return {
    async run() {
      seen = undefined;
      await periodic.run();
    },
    refresh() {
      refreshing ??= refresh();
      return refreshing;
    },
    undisturbed: (work) =>
      takingOver(async () => {
        await takeOver(async () => undefined);
        hasBegun = true;
        return work();
      }),
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(timer);
      stack.dispose();
      await periodic[Symbol.asyncDispose]();
    },
  };
}
