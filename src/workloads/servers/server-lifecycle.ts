import type { Logger } from 'pino';
import type { InstanceLease } from '../../cluster/instances/instance-lease.ts';
import { forEachAtOnce } from '../../platform/concurrency/for-each-at-once.ts';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type { Spawner } from '../../plugin/host/spawner.ts';
import { type Server, unreachableSince, whyLost } from './server.ts';
import { createServerOwnership, type LifecycleLimits } from './server-ownership-store.ts';
import type { ServerRoutes } from './server-routes.ts';
import type { LaunchPlan } from './server-start.ts';
import type { ServerStore } from './server-store.ts';
import { createServerSync } from './server-sync.ts';
import { createServerUnit, type ServerUnit } from './server-unit.ts';
import { createServerWatch } from './server-watch.ts';
import { runsAlready, unreachable, withoutLease } from './start-refusals.ts';
import type { UnitEvents } from './unit-events.ts';

/** A start that was accepted. */
export interface AcceptedStart {
  /** Resolves when the server is ready, rejects when it failed. Already handled: may be ignored. */
  readonly ready: Promise<void>;
}

/** A stop that has begun. */
export interface AcceptedStop {
  /** Resolves when the server is gone; never rejects. */
  readonly stopped: Promise<void>;
}

/** What became of the servers of an earlier hub. */
export interface Restoration {
  readonly restored: number;
  readonly gone: number;
  /** Resolves when nothing is left of those that are gone; never rejects. */
  readonly cleared: Promise<void>;
}

/** All servers of this instance, and what it can do with those of others. */
export interface ServerLifecycle extends AsyncDisposable {
  /** The unit of a server that is not stopped. */
  unitOf(serverId: string): ServerUnit | undefined;
  units(): Iterable<ServerUnit>;
  /**
   * Starts a server. A start under way is joined, also one of another instance; a stop under way is waited
   * for. Throws `bad_request` when it runs already, `conflict` when it is unreachable, `too_many_requests`
   * over a limit, and `unavailable` without a lease; `plan` runs only when it is needed.
   */
  start(server: Server, plan: () => LaunchPlan): Promise<AcceptedStart>;
  /**
   * Begins to stop a server, also one that is starting, and one of another instance. An unreachable one is
   * given up: should its instance come back, that ends it.
   */
  stop(server: Server): Promise<AcceptedStop>;
  /** Stops a user's servers and lets none start while the account is changed. */
  withoutServersOf<Result>(userId: string, work: () => Promise<Result>): Promise<Result>;
  /** Resolves when a server that another instance starts is ready, rejects when that failed. */
  untilReady(server: Server): Promise<void>;
  /**
   * Whether visitors are led to a server that runs, here or at another instance. Where no route is known, the
   * database is asked first: another instance may have made it ready just before.
   */
  reaches(server: Server): Promise<boolean>;
  /** Finds the servers an earlier hub left running, and cleans up after those that are gone. */
  restore(): Promise<Restoration>;
  /** Polls all servers now, and leads visitors where those of other instances are. Never throws. */
  checkRoutes(): Promise<void>;
  /** Cancels the starts under way and lets none begin: the hub is about to stop. */
  close(): Promise<void>;
}

const parallelRestores = 32;
/** How soon after an outage of the database it knows which servers have ended meanwhile. */
const catchUpIntervalMs = 2_000;
/** They wait for one another's looks at the processes of the machine, which cost the same for all at once. */
const parallelLooks = 200;
/** Each waits for the disk, and other writes wait behind them. */
const parallelRecordings = 4;

export function createServerLifecycle(deps: {
  readonly database: HubDatabase;
  readonly store: ServerStore;
  readonly instance: Pick<
    InstanceLease,
    'id' | 'machineId' | 'isHeld' | 'isHeldSince' | 'onRegained'
  >;
  /** Whether other instances may use the database. */
  readonly isShared: boolean;
  /** False where nothing can be started: then the servers of others are not taken over. */
  readonly canTakeOver: boolean;
  readonly spawner: Spawner;
  /** How to go on with a start of an earlier hub; undefined where its spawner cannot. */
  readonly planResume?: (server: Server) => LaunchPlan | undefined;
  readonly events: UnitEvents;
  readonly routes: Pick<ServerRoutes, 'routeToRemote' | 'isOpen'>;
  readonly limits: LifecycleLimits;
  readonly pollIntervalMs: number;
  readonly stopGraceMs: number;
  /** Whether servers end with the hub; otherwise the next hub finds them again. */
  readonly stopsServersAtEnd: () => boolean;
  readonly log: Logger;
}): ServerLifecycle {
  const { database, store, spawner, instance, log } = deps;
  const ownership = createServerOwnership(database, {
    id: instance.id,
    machineId: instance.machineId,
    isMachineBound: spawner.reach !== 'anywhere',
  });
  const closing = new AbortController();
  const watch = createServerWatch({ store, database, signal: closing.signal });
  const units = new Map<string, ServerUnit>();
  const startsUnderWay = new Map<string, { userId: string; accepted: Promise<AcceptedStart> }>();
  const closedUsers = new Map<string, number>();
  /** Servers of an earlier hub about which the spawner could not say anything yet. */
  const unclear = new Map<string, Server>();
  /** Whose end could not be recorded. */
  const behind = new Set<ServerUnit>();
  const clearing = {
    endings: createLimiter(parallelLooks),
    recordings: createLimiter(parallelRecordings),
  };
  let isClosed = false;

  const polling = createPeriodic({
    intervalMs: deps.pollIntervalMs,
    work: pollAll,
    onError: (error) => log.warn({ err: error }, 'could not poll the servers'),
  });
  const catchingUp = createPeriodic({
    intervalMs: catchUpIntervalMs,
    work: () => forEachAtOnce(parallelRecordings, behind, (unit) => unit.catchUp()),
    onError: (error) => log.warn({ err: error }, 'could not record which servers are stopped'),
  });

  async function pollAll(): Promise<void> {
    await forEachAtOnce(parallelRestores, unclear.values(), async (server) => {
      if (!(await restoreOne(server))) await clearAway(server, whyLost(server));
    });
    await forEachAtOnce(parallelLooks, [...units.values()], async (unit) => {
      try {
        await unit.poll();
      } catch (error) {
        log.warn({ err: error, user: unit.server.userName }, 'could not poll a server');
      }
    });
  }

  const sync = createServerSync({
    ...deps,
    ownership,
    units: () => units.values(),
    goOn: async (server) => {
      if (units.has(server.id)) unclear.set(server.id, server);
      // In the background: what a dead server left behind must not delay those that run.
      else if (!(await restoreOne(server))) void clearAway(server, whyLost(server));
    },
  });

  /** Of all units: a copy of its own took each two kilobytes. */
  const unitDeps = {
    ...deps,
    ownership,
    onSettled(unit: ServerUnit) {
      behind.delete(unit);
      if (units.get(unit.server.id) === unit) units.delete(unit.server.id);
    },
    onBehind: (unit: ServerUnit) => void behind.add(unit),
  };

  function unitFor(server: Server): ServerUnit {
    const unit = units.get(server.id) ?? createServerUnit(server, unitDeps);
    units.set(server.id, unit);
    return unit;
  }

  function requireOpen(server: Server): void {
    if (isClosed) throw new HubError('unavailable', text`The hub is stopping.`);
    if (closedUsers.has(server.userId)) {
      throw new HubError('conflict', text`The account is being changed; try again in a moment.`);
    }
  }

  function isRemote({ id, state, instance: owner }: Server): boolean {
    return (
      state !== 'stopped' && !units.has(id) && owner?.isLive === true && owner.id !== instance.id
    );
  }

  /** Joins what another instance does with a server; undefined when that has just come to an end. */
  async function joinRemote(server: Server): Promise<AcceptedStart | undefined> {
    if (server.state === 'running') throw runsAlready();
    if (server.state === 'stopping') {
      const left = await watch.untilDown(server.id);
      if (left !== undefined && unreachableSince(left) !== undefined) throw unreachable(left);
      return undefined;
    }
    const ready = watch.untilReady(server.id);
    ready.catch(() => undefined);
    return { ready };
  }

  async function requireReachable(server: Server): Promise<void> {
    if (units.has(server.id) || unreachableSince(server) === undefined) return;
    await sync.run();
    if (!units.has(server.id)) throw unreachable(server);
  }

  async function startFrom(server: Server, plan: () => LaunchPlan): Promise<AcceptedStart> {
    await requireReachable(server);
    const joined = isRemote(server) ? await joinRemote(server) : undefined;
    return joined ?? begin(server, plan);
  }

  async function begin(server: Server, plan: () => LaunchPlan): Promise<AcceptedStart> {
    const stopping = units.get(server.id);
    if (stopping?.state === 'stopping') await (await stopping.stop()).stopped;
    requireOpen(server);
    const launchPlan = plan();
    const unit = unitFor(server);
    try {
      await unit.start(launchPlan);
    } catch (error) {
      const now = await store.findById(server.id).catch(() => undefined);
      if (now === undefined || !isRemote(now) || now.state === 'stopping') throw error;
      // Another instance was faster, and may be done.
      const ready = watch.untilReady(server.id);
      ready.catch(() => undefined);
      return { ready };
    }
    return { ready: unit.ready };
  }

  function clearAway(server: Server, failure: Phrase | null): Promise<void> {
    return unitFor(server).clearAway(failure, clearing);
  }

  async function stop(server: Server): Promise<AcceptedStop> {
    await startsUnderWay.get(server.id)?.accepted.catch(() => undefined);
    const unit = units.get(server.id);
    if (unit !== undefined) return unit.stop();
    if (server.state === 'stopped') return { stopped: Promise.resolve() };
    if (isRemote(server)) {
      await ownership.requestStop(server.id);
      return { stopped: stoppedRemotely(server) };
    }
    if (unreachableSince(server) !== undefined) return { stopped: giveUp(server) };
    // Of this instance, but not found again yet: what the spawner knows of it is all there is.
    unclear.delete(server.id);
    return { stopped: clearAway(server, null) };
  }

  async function stoppedRemotely({ id }: Server): Promise<void> {
    try {
      const left = await watch.untilDown(id);
      if (left !== undefined && left.state !== 'stopped') await giveUp(left);
    } catch (error) {
      log.warn({ err: error, serverId: id }, 'could not follow the stop of a server');
    }
  }

  /** Ends a server of an instance that is gone where it can be ended from here, and forgets it otherwise. */
  async function giveUp(server: Server): Promise<void> {
    const [taken] = deps.canTakeOver ? await ownership.takeOver({ id: server.id }) : [];
    if (taken !== undefined) return clearAway(taken.server, null);
    if (!(await ownership.forget(server.id))) return;
    log.warn(
      { user: server.userName, server: server.name, instance: server.instance?.name },
      'unreachable server given up',
    );
    await deps.events.onGone(server);
  }

  async function stopAllOf(userId: string): Promise<void> {
    const starting = [...startsUnderWay.values()].filter((start) => start.userId === userId);
    await Promise.allSettled(starting.map(({ accepted }) => accepted));
    const stored = await store.listByUser([userId], { withStopped: false });
    const running = [...units.values()].filter(({ server }) => server.userId === userId);
    const stops = await Promise.all([
      ...running.map((unit) => unit.stop()),
      ...(stored.get(userId) ?? []).filter(({ id }) => !units.has(id)).map(stop),
    ]);
    await Promise.all(stops.map(({ stopped }) => stopped));
  }

  async function stopThose(isMeant: (unit: ServerUnit) => boolean): Promise<void> {
    const stops = await Promise.all([...units.values()].filter(isMeant).map((unit) => unit.stop()));
    await Promise.all(stops.map(({ stopped }) => stopped));
  }

  async function close(): Promise<void> {
    isClosed = true;
    closing.abort();
    await sync[Symbol.asyncDispose]();
    await Promise.allSettled([...startsUnderWay.values()].map(({ accepted }) => accepted));
    const endsAll = deps.stopsServersAtEnd();
    await stopThose((unit) => unit.state !== 'running' && (endsAll || !unit.leaveWaiting()));
  }

  /** Resolves when it is clear what became of the server: true when it goes on. */
  async function restoreOne(server: Server): Promise<boolean> {
    const unit = unitFor(server);
    unclear.delete(server.id);
    if (unit.resume()) return true;
    try {
      const { onOutput } = unit;
      const found =
        server.state === 'running'
          ? await spawner.restore(server.spawnerState, { onOutput })
          : undefined;
      if (found === undefined) return false;
      unit.adopt(found);
      return true;
    } catch (error) {
      log.error(
        { err: error, user: server.userName },
        'could not find out whether a server runs; trying again',
      );
      units.delete(server.id);
      unclear.set(server.id, server);
      return true;
    }
  }

  async function restoreAll(servers: readonly Server[]): Promise<Restoration> {
    const lost: Server[] = [];
    const left = servers.filter(({ id }) => !units.has(id));
    await forEachAtOnce(parallelRestores, left, async (server) => {
      if (!(await restoreOne(server))) lost.push(server);
    });
    // In the background: what a dead server left behind must not delay the start of the hub.
    const clearings = lost.map((server) => clearAway(server, whyLost(server)));
    const cleared = Promise.all(clearings).then(() => undefined);
    return { restored: left.length - lost.length, gone: lost.length, cleared };
  }

  return {
    unitOf: (serverId) => units.get(serverId),
    units: () => units.values(),
    untilReady: ({ id }) => watch.untilReady(id),
    async reaches(server) {
      if (!deps.routes.isOpen(server)) await sync.refresh();
      return deps.routes.isOpen(server);
    },
    stop,

    async start(server, plan) {
      requireOpen(server);
      const underWay = startsUnderWay.get(server.id);
      if (underWay !== undefined) return underWay.accepted;
      const unit = units.get(server.id);
      if (unit?.state === 'running') throw runsAlready();
      if (unit?.state === 'starting') return { ready: unit.ready };
      if (!instance.isHeld()) throw withoutLease();
      const accepted = startFrom(server, plan);
      startsUnderWay.set(server.id, { userId: server.userId, accepted });
      try {
        return await accepted;
      } finally {
        startsUnderWay.delete(server.id);
      }
    },

    async withoutServersOf(userId, work) {
      closedUsers.set(userId, (closedUsers.get(userId) ?? 0) + 1);
      try {
        await stopAllOf(userId);
        return await work();
      } finally {
        const left = (closedUsers.get(userId) ?? 1) - 1;
        if (left === 0) closedUsers.delete(userId);
        else closedUsers.set(userId, left);
      }
    },

    async restore() {
      const restoration = await sync.undisturbed(async () =>
        restoreAll(await ownership.listOwned()),
      );
      // Visitors of other instances' servers are led there from the first request on.
      await sync.run();
      return restoration;
    },

    async checkRoutes() {
      await polling.run();
      await sync.run();
    },

    close,

    async [Symbol.asyncDispose]() {
      await Promise.all([polling, catchingUp].map((each) => each[Symbol.asyncDispose]()));
      await close();
      if (deps.stopsServersAtEnd()) await stopThose(() => true);
      for (const unit of units.values()) unit.release();
    },
  };
}
