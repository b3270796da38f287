import type { Logger } from 'pino';
import { createLimiter } from '../concurrency/limiter.ts';
import { createPeriodic } from '../concurrency/periodic.ts';
import { HubError } from '../errors.ts';
import type { Spawner } from '../plugin-host/spawner.ts';
import type { Server } from './server.ts';
import type { LaunchPlan } from './server-start.ts';
import type { ServerStore } from './server-store.ts';
import { createServerUnit, type ServerUnit, type UnitEvents } from './server-unit.ts';

export interface LifecycleLimits {
  /** Servers starting at once; 0 for no limit. */
  readonly concurrentSpawns: number;
  /** Servers starting or running at once; 0 for no limit. */
  readonly activeServers: number;
}

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

/** All servers of this process. */
export interface ServerLifecycle extends AsyncDisposable {
  /** The unit of a server that is not stopped. */
  unitOf(serverId: string): ServerUnit | undefined;
  units(): Iterable<ServerUnit>;
  /**
   * Starts a server. A start under way is joined; a stop under way is waited for. Throws `bad_request`
   * when it runs already and `too_many_requests` over a limit; `plan` runs only when it is needed.
   */
  start(server: Server, plan: () => LaunchPlan): Promise<AcceptedStart>;
  /** Begins to stop a server, also one that is starting. */
  stop(server: Server): Promise<AcceptedStop>;
  /** Stops a user's servers and lets none start while the account is changed. */
  withoutServersOf<Result>(userId: string, work: () => Promise<Result>): Promise<Result>;
  /** Finds the servers an earlier hub left running, and cleans up after those that are gone. */
  restore(): Promise<Restoration>;
  /** Cancels the starts under way and lets none begin: the hub is about to stop. */
  close(): Promise<void>;
}

const throttleRetrySeconds = { least: 5, spread: 10 };
const parallelRestores = 32;
const parallelPolls = 8;
/** How soon after an outage of the database it knows which servers have ended meanwhile. */
const catchUpIntervalMs = 2_000;
/** They wait for one another's looks at the processes of the machine, which cost the same for all at once. */
const parallelClearings = 100;
/** Each waits for the disk, and whoever writes something else waits behind them. */
const parallelRecordings = 4;

export function createServerLifecycle(deps: {
  readonly store: ServerStore;
  readonly spawner: Spawner;
  readonly events: UnitEvents;
  readonly limits: LifecycleLimits;
  readonly pollIntervalMs: number;
  readonly stopGraceMs: number;
  /** Whether servers end with the hub; otherwise the next hub finds them again. */
  readonly stopsServersAtEnd: () => boolean;
  readonly log: Logger;
}): ServerLifecycle {
  const { store, spawner, limits, log } = deps;
  const units = new Map<string, ServerUnit>();
  const startsUnderWay = new Map<string, { userId: string; accepted: Promise<AcceptedStart> }>();
  const closedUsers = new Map<string, number>();
  /** Servers of an earlier hub about which the spawner could not say anything yet. */
  const unclear = new Map<string, Server>();
  const clearing = {
    endings: createLimiter(parallelClearings),
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
    async work() {
      const behind = [...units.values()].filter(({ isRecordBehind }) => isRecordBehind);
      await forEachAtOnce(parallelPolls, behind, (unit) => unit.catchUp());
    },
    onError: (error) => log.warn({ err: error }, 'could not record which servers are stopped'),
  });

  async function pollAll(): Promise<void> {
    await forEachAtOnce(parallelPolls, unclear.values(), async (server) => {
      if (!(await restoreOne(server))) await clearAway(server, whyLost(server));
    });
    await forEachAtOnce(parallelPolls, [...units.values()], async (unit) => {
      try {
        await unit.poll();
      } catch (error) {
        log.warn({ err: error, user: unit.server.userName }, 'could not poll a server');
      }
    });
  }

  function unitFor(server: Server): ServerUnit {
    const existing = units.get(server.id);
    if (existing !== undefined) return existing;
    const unit = createServerUnit(server, {
      ...deps,
      onSettled(settled) {
        if (units.get(server.id) === settled) units.delete(server.id);
      },
    });
    units.set(server.id, unit);
    return unit;
  }

  function requireOpen(server: Server): void {
    if (isClosed) throw new HubError('unavailable', 'The hub is stopping.');
    if (closedUsers.has(server.userId)) {
      throw new HubError('conflict', 'The account is being changed; try again in a moment.');
    }
  }

  function requireCapacity(): void {
    let starting = startsUnderWay.size;
    let active = startsUnderWay.size;
    for (const unit of units.values()) {
      if (startsUnderWay.has(unit.server.id)) continue;
      if (unit.state === 'starting' && !unit.isQueued) starting += 1;
      if (unit.state !== 'stopped') active += 1;
    }
    const retryAfterSeconds =
      throttleRetrySeconds.least + Math.random() * throttleRetrySeconds.spread;
    if (limits.activeServers > 0 && active >= limits.activeServers) {
      throw new HubError('too_many_requests', 'As many servers run as this hub allows.', {
        hint: 'Try again when another server has stopped.',
        retryAfterSeconds: retryAfterSeconds * 4,
      });
    }
    if (limits.concurrentSpawns > 0 && starting >= limits.concurrentSpawns) {
      throw new HubError('too_many_requests', 'Many servers are starting at this moment.', {
        hint: 'Try again in a few seconds.',
        retryAfterSeconds,
      });
    }
  }

  async function begin(server: Server, plan: () => LaunchPlan): Promise<AcceptedStart> {
    const stopping = units.get(server.id);
    if (stopping?.state === 'stopping') await (await stopping.stop()).stopped;
    requireOpen(server);
    const launchPlan = plan();
    const unit = unitFor(server);
    await unit.start(launchPlan);
    return { ready: unit.ready };
  }

  function clearAway(server: Server, failure: string | null): Promise<void> {
    return unitFor(server).clearAway(failure, clearing);
  }

  async function stop(server: Server): Promise<AcceptedStop> {
    await startsUnderWay.get(server.id)?.accepted.catch(() => undefined);
    const unit = units.get(server.id);
    if (unit !== undefined) return unit.stop();
    if (server.state === 'stopped') return { stopped: Promise.resolve() };
    // Stored as active, but not of this process: what the spawner knows of it is all there is.
    unclear.delete(server.id);
    return { stopped: clearAway(server, null) };
  }

  async function stopAllOf(userId: string): Promise<void> {
    const starting = [...startsUnderWay.values()].filter((start) => start.userId === userId);
    await Promise.allSettled(starting.map(({ accepted }) => accepted));
    const running = [...units.values()].filter(({ server }) => server.userId === userId);
    const left = [...unclear.values()].filter((server) => server.userId === userId);
    const stops = await Promise.all([...running.map((unit) => unit.stop()), ...left.map(stop)]);
    await Promise.all(stops.map(({ stopped }) => stopped));
  }

  async function stopThose(isMeant: (unit: ServerUnit) => boolean): Promise<void> {
    const stops = await Promise.all([...units.values()].filter(isMeant).map((unit) => unit.stop()));
    await Promise.all(stops.map(({ stopped }) => stopped));
  }

  async function close(): Promise<void> {
    isClosed = true;
    await Promise.allSettled([...startsUnderWay.values()].map(({ accepted }) => accepted));
    await stopThose(({ state }) => state !== 'running');
  }

  /** Resolves when it is clear what became of the server: true when it goes on. */
  async function restoreOne(server: Server): Promise<boolean> {
    const unit = unitFor(server);
    try {
      const { onOutput } = unit;
      const found =
        server.state === 'running'
          ? await spawner.restore(server.spawnerState, { onOutput })
          : undefined;
      unclear.delete(server.id);
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

  return {
    unitOf: (serverId) => units.get(serverId),
    units: () => units.values(),
    stop,

    async start(server, plan) {
      requireOpen(server);
      const underWay = startsUnderWay.get(server.id);
      if (underWay !== undefined) return underWay.accepted;
      const unit = units.get(server.id);
      if (unit?.state === 'running') {
        throw new HubError('bad_request', 'The server is already running.');
      }
      if (unit?.state === 'starting') return { ready: unit.ready };
      requireCapacity();
      const accepted = begin(server, plan);
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
      const servers = await store.listActive();
      const lost: Server[] = [];
      await forEachAtOnce(parallelRestores, servers, async (server) => {
        if (!(await restoreOne(server))) lost.push(server);
      });
      // In the background: what a dead server left behind must not delay the start of the hub.
      const clearings = lost.map((server) => clearAway(server, whyLost(server)));
      const cleared = Promise.all(clearings).then(() => undefined);
      return { restored: servers.length - lost.length, gone: lost.length, cleared };
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

function whyLost({ state }: Server): string {
  return state === 'running'
    ? 'The server ended while the hub was not running.'
    : 'The hub stopped while the server was starting or stopping.';
}

async function forEachAtOnce<Item>(
  limit: number,
  items: Iterable<Item>,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const queue = [...items].values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
