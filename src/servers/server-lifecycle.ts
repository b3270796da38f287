import type { Logger } from 'pino';
import { HubError } from '../errors.ts';
import type { Spawner } from '../spawning/spawner.ts';
import type { Server } from './server.ts';
import type { ServerStore } from './server-store.ts';
import {
  createServerUnit,
  type LaunchPlan,
  type ServerUnit,
  type UnitEvents,
} from './server-unit.ts';

export interface LifecycleLimits {
  /** Servers starting at once; 0 for no limit. */
  readonly concurrentSpawns: number;
  /** Servers starting or running at once; 0 for no limit. */
  readonly activeServers: number;
}

/** A start that was accepted. */
export interface AcceptedStart {
  readonly unit: ServerUnit;
  /** Resolves when the server is ready, rejects when it failed. Already handled: may be ignored. */
  readonly ready: Promise<void>;
}

/** All servers of this process. */
export interface ServerLifecycle extends AsyncDisposable {
  /** The unit of a server that is not stopped, or whose start failed lately. */
  unitOf(serverId: string): ServerUnit | undefined;
  /**
   * Starts a server. A start under way is joined; a stop under way is waited for. Throws `bad_request`
   * when it runs already and `too_many_requests` over a limit; `plan` runs only when it is needed.
   */
  start(server: Server, plan: () => Promise<LaunchPlan>): Promise<AcceptedStart>;
  /** Stops a server, also one that is starting; resolves when it is gone. */
  stop(server: Server): Promise<void>;
  /** Finds the servers an earlier hub left running, and cleans up after those that are gone. */
  restore(): Promise<{ readonly restored: number; readonly gone: number }>;
  units(): Iterable<ServerUnit>;
  stopAll(): Promise<void>;
}

const throttleRetrySeconds = { least: 5, spread: 10 };
const parallelRestores = 32;

/** Creates the life of users' servers over a spawner. */
export function createServerLifecycle(parts: {
  readonly store: ServerStore;
  readonly spawner: Spawner;
  readonly events: UnitEvents;
  readonly limits: LifecycleLimits;
  readonly pollIntervalMs: number;
  readonly stopGraceMs: number;
  readonly log: Logger;
}): ServerLifecycle {
  const { store, spawner, events, limits, log } = parts;
  const units = new Map<string, ServerUnit>();
  const startsUnderWay = new Map<string, Promise<AcceptedStart>>();

  const timer = setInterval(() => void pollAll(), parts.pollIntervalMs);
  timer.unref();

  async function pollAll(): Promise<void> {
    for (const unit of units.values()) {
      try {
        await unit.poll();
      } catch (error) {
        log.warn({ err: error, user: unit.server.userName }, 'could not poll a server');
      }
    }
  }

  function unitFor(server: Server): ServerUnit {
    const existing = units.get(server.id);
    if (existing !== undefined) return existing;
    const unit = createServerUnit(server, {
      store,
      spawner,
      events,
      stopGraceMs: parts.stopGraceMs,
      log,
    });
    units.set(server.id, unit);
    return unit;
  }

  /** A unit that holds nothing anybody could still ask for is forgotten. */
  function forgetWhenIdle(unit: ServerUnit): void {
    if (unit.state === 'stopped' && units.get(unit.server.id) === unit)
      units.delete(unit.server.id);
  }

  function requireCapacity(): void {
    let starting = startsUnderWay.size;
    let active = startsUnderWay.size;
    for (const unit of units.values()) {
      if (startsUnderWay.has(unit.server.id)) continue;
      if (unit.state === 'starting') starting += 1;
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

  async function begin(server: Server, plan: () => Promise<LaunchPlan>): Promise<AcceptedStart> {
    const existing = units.get(server.id);
    if (existing?.state === 'stopping') await existing.stop();
    const launchPlan = await plan();
    const unit = unitFor(server);
    return { unit, ready: handled(unit.start(launchPlan)) };
  }

  async function join(unit: ServerUnit): Promise<void> {
    const signal = new AbortController().signal;
    for await (const event of unit.progress?.follow(signal) ?? []) {
      if (event.failed === true) throw new HubError('upstream_failed', event.message);
    }
  }

  async function restoreOne(server: Server): Promise<boolean> {
    const unit = unitFor(server);
    const found =
      server.url === undefined
        ? undefined
        : await spawner.restore(server.spawnerState, { onOutput: () => undefined });
    if (found !== undefined && server.state === 'running') {
      unit.adopt(found);
      return true;
    }
    if (found !== undefined) {
      await spawner.stop(found.state, {
        graceMs: parts.stopGraceMs,
        signal: AbortSignal.timeout(parts.stopGraceMs + 10_000),
      });
    }
    const message =
      server.state === 'running'
        ? 'The server ended while the hub was not running.'
        : 'The hub stopped while the server was starting or stopping.';
    await store.moveTo(server.id, 'stopped', {
      failure: { message, at: new Date(), output: [] },
      url: null,
      spawnerState: {},
      startedAt: null,
    });
    await events.onGone(server);
    forgetWhenIdle(unit);
    return false;
  }

  return {
    unitOf: (serverId) => units.get(serverId),
    units: () => units.values(),

    async start(server, plan) {
      const underWay = startsUnderWay.get(server.id);
      if (underWay !== undefined) return underWay;
      const unit = units.get(server.id);
      if (unit?.state === 'running')
        throw new HubError('bad_request', 'The server is already running.');
      if (unit?.state === 'starting') return { unit, ready: handled(join(unit)) };
      requireCapacity();
      const accepted = begin(server, plan);
      startsUnderWay.set(server.id, accepted);
      try {
        return await accepted;
      } finally {
        startsUnderWay.delete(server.id);
      }
    },

    async stop(server) {
      const accepted = await startsUnderWay.get(server.id)?.catch(() => undefined);
      const unit = accepted?.unit ?? units.get(server.id);
      if (unit === undefined) return;
      await unit.stop();
      forgetWhenIdle(unit);
    },

    async restore() {
      const servers = await store.listActive();
      let restored = 0;
      const queue = servers.values();
      const worker = async () => {
        for (const server of queue) {
          try {
            if (await restoreOne(server)) restored += 1;
          } catch (error) {
            log.error({ err: error, user: server.userName }, 'could not restore a server');
          }
        }
      };
      await Promise.all(Array.from({ length: parallelRestores }, worker));
      return { restored, gone: servers.length - restored };
    },

    async stopAll() {
      await Promise.all([...units.values()].map((unit) => unit.stop()));
    },

    async [Symbol.asyncDispose]() {
      clearInterval(timer);
    },
  };
}

/** Marks a rejection as dealt with, for callers that may not wait for it. */
function handled(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}
