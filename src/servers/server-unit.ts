import type { Logger } from 'pino';
import type { Limiter } from '../concurrency/limiter.ts';
import { timeLimit } from '../concurrency/time-limit.ts';
import { HubError, isStorageUnavailable } from '../errors.ts';
import type { SpawnPhase } from '../plugin-host/spawn-request.ts';
import type { SpawnedServer, Spawner, SpawnerState } from '../plugin-host/spawner.ts';
import { createProgressLog, type ProgressLog } from './progress-log.ts';
import type { Server, ServerFailure, ServerState } from './server.ts';
import { describeExit, type LaunchPlan, startServer } from './server-start.ts';
import type { ServerStore } from './server-store.ts';

/** What happens outside the unit when a server comes and goes. */
export interface UnitEvents {
  /** The server answers: open its route. Returns its public path. */
  onReady(server: Server, url: string): string;
  /** The server is going or gone: close its route at once. */
  onUnavailable(server: Server): void;
  /** The server is gone for good: revoke its token, run the hooks. */
  onGone(server: Server): Promise<void>;
  onStartEnded(outcome: 'ready' | 'failed' | 'cancelled', seconds: number): void;
}

/** One server's life in this process: at most one transition at a time. */
export interface ServerUnit {
  readonly server: Server;
  readonly state: ServerState;
  readonly spawnerState: SpawnerState | undefined;
  /** Whether it waits in a queue of its engine, as long as that takes. */
  readonly isQueued: boolean;
  /** The steps of a start under way. */
  readonly progress: ProgressLog | undefined;
  /** Resolves when the start under way made the server ready, rejects when it failed. */
  readonly ready: Promise<void>;
  /** Takes the server for a start and begins it. Throws `conflict` when another start has it. */
  start(plan: LaunchPlan): Promise<void>;
  /** Begins to end the server, also one that is starting; `stopped` tells when it is gone. */
  stop(): Promise<{ readonly stopped: Promise<void> }>;
  /** Takes over a server that an earlier hub started. */
  adopt(spawned: SpawnedServer): void;
  /** Ends and clears away what an earlier hub left of a server, when the limiter has room. */
  clearAway(
    failure: string | null,
    limits: { readonly endings: Limiter; readonly recordings: Limiter },
  ): Promise<void>;
  /** Polls whether the server still runs. */
  poll(): Promise<void>;
  /** Whether the server is gone, which the database could not be told. */
  readonly isRecordBehind: boolean;
  /** Tells the database of an end that it could not be told of. Never throws. */
  catchUp(): Promise<void>;
  /** Tells of the output of an adopted server. */
  onOutput(line: string): void;
  /** Leaves a running server alone from now on. */
  release(): void;
}

const outputLines = 50;
const unknownMessage = 'the engine of a server does not say whether it runs; it counts as running';
/** What a spawner has beyond the grace of its processes before a stop counts as failed. */
const stopReserveMs = 10_000;

export function createServerUnit(
  server: Server,
  deps: {
    readonly store: ServerStore;
    readonly spawner: Spawner;
    readonly events: UnitEvents;
    readonly stopGraceMs: number;
    /** The server is stopped and the database knows: the unit holds nothing any more. */
    readonly onSettled: (unit: ServerUnit) => void;
    readonly log: Logger;
  },
): ServerUnit {
  const { store, spawner, events, stopGraceMs } = deps;
  const log = deps.log.child({ user: server.userName, server: server.name });
  let state: ServerState = 'stopped';
  let isReleased = false;
  let phase: SpawnPhase | undefined;
  let unknownSince: Date | undefined;
  /** The transition under way or the last one; never rejects. */
  let transition: Promise<void> = Promise.resolve();
  let ready: Promise<void> = Promise.resolve();
  let start: { readonly cancel: AbortController; readonly steps: ProgressLog } | undefined;
  let spawned: SpawnedServer | undefined;
  let output: string[] = [];
  let lastStranger: string | undefined;
  /** An end that the database could not be told of: it is told later, or before the next start. */
  let untold: { readonly failure: ServerFailure | null } | undefined;
  /** Whether what belongs to the run that ended is cleaned up. */
  let isCleanedUp = false;

  function onOutput(line: string): void {
    output.push(line);
    if (output.length > outputLines * 2) output = output.slice(-outputLines);
  }

  const failureOf = (error: unknown): ServerFailure => ({
    message: error instanceof Error ? error.message : String(error),
    at: new Date(),
    output: output.slice(-outputLines),
  });

  function settle(): void {
    state = 'stopped';
    spawned = undefined;
    start = undefined;
    phase = undefined;
    if (untold === undefined) deps.onSettled(unit);
  }

  /** Begins a transition after the one before it. */
  function then(work: () => Promise<void>): Promise<void> {
    const done = transition.then(work);
    transition = done.catch(() => undefined);
    return done;
  }

  function watch(running: SpawnedServer): void {
    void running.exited?.then((exit) => onDeath(running, `The server ended${describeExit(exit)}.`));
  }

  async function onDeath(dead: SpawnedServer, message: string): Promise<void> {
    if (spawned !== dead || state !== 'running' || isReleased) return;
    state = 'stopping';
    events.onUnavailable(server);
    const failure = failureOf(message);
    log.warn({ output: failure.output.slice(-5) }, `${message} Its route is closed.`);
    await then(async () => {
      await end(dead.state);
      await recordStopped(failure);
      settle();
    });
  }

  async function run(
    plan: LaunchPlan,
    { cancel, steps }: { readonly cancel: AbortController; readonly steps: ProgressLog },
  ): Promise<void> {
    const startedAt = performance.now();
    const seconds = () => (performance.now() - startedAt) / 1000;
    let launched: SpawnedServer | undefined;
    try {
      const running = await startServer({
        plan,
        cancelled: cancel.signal,
        steps,
        onOutput,
        onPhase(next) {
          phase = next;
        },
        keepState: (spawnerState) => store.update(server.id, { spawnerState }),
        async onLaunched(server_) {
          launched = server_;
          phase = undefined;
          const { url, state: spawnerState } = server_;
          await store.update(server.id, { url, spawnerState, startedAt: new Date() });
        },
        endLate: end,
        windUpMs: stopGraceMs + stopReserveMs,
      });
      if (!(await store.moveTo(server.id, 'running', { failure: null }))) {
        throw new HubError('conflict', 'The server was removed or stopped while it started.');
      }
      cancel.signal.throwIfAborted();
      const url = events.onReady(server, running.url);
      spawned = running;
      state = 'running';
      start = undefined;
      watch(running);
      steps.add({ progress: 100, ready: true, message: 'The server is ready.', url });
      events.onStartEnded('ready', seconds());
    } catch (error) {
      const isCancelled = cancel.signal.aborted;
      const failure = failureOf(isCancelled ? 'The start was cancelled.' : error);
      state = 'stopping';
      events.onUnavailable(server);
      await recordStopping();
      if (launched !== undefined) await end(launched.state);
      await recordStopped(isCancelled ? null : failure);
      steps.add({ progress: 100, failed: true, message: failure.message, output: failure.output });
      events.onStartEnded(isCancelled ? 'cancelled' : 'failed', seconds());
      const why = { err: error, output: failure.output.slice(-5) };
      if (isCancelled) log.info('the start of a server was cancelled');
      else log.warn(why, `a server did not start: ${failure.message}`);
      settle();
      if (isCancelled) throw new HubError('conflict', failure.message);
      if (error instanceof HubError) throw error;
      throw new HubError('upstream_failed', failure.message, { cause: error });
    } finally {
      steps.end();
    }
  }

  /** Takes the server for this process: another process of the hub may want to start it too. */
  async function claim({ userOptions }: LaunchPlan): Promise<void> {
    if (untold !== undefined) await recordStopped(null);
    isCleanedUp = false;
    const change = { failure: null, userOptions };
    // The plan was made for the name: a server that was renamed in the meantime is another one.
    if (await store.moveTo(server.id, 'starting', change, server.name)) return;
    throw new HubError('conflict', 'The server is being started or stopped elsewhere.');
  }

  async function end(spawnerState: SpawnerState): Promise<void> {
    try {
      const signal = timeLimit(stopGraceMs + stopReserveMs);
      await spawner.stop(spawnerState, { graceMs: stopGraceMs, signal });
    } catch (error) {
      log.error({ err: error }, 'a server could not be stopped; processes of it may be left');
    }
  }

  async function discard(): Promise<void> {
    try {
      await spawner.discard?.(server.id, { graceMs: stopGraceMs });
    } catch (error) {
      log.error({ err: error }, 'processes of a server may be left');
    }
  }

  async function recordStopping(): Promise<void> {
    try {
      await store.moveTo(server.id, 'stopping');
    } catch (error) {
      log.error({ err: error }, 'could not record that a server is stopping');
    }
  }

  /** Records the end of a server. It never throws: the server is gone, whatever the database says. */
  async function recordStopped(failure: ServerFailure | null): Promise<void> {
    const wasUntold = untold !== undefined;
    untold = undefined;
    const isLate = (error: unknown, message: string): void => {
      untold = { failure };
      // Said once; it is tried again every few seconds.
      if (!wasUntold) log.error({ err: error }, message);
    };
    try {
      if (!isCleanedUp) await events.onGone(server);
      isCleanedUp = true;
    } catch (error) {
      isCleanedUp = !isStorageUnavailable(error);
      if (isCleanedUp) log.error({ err: error }, 'could not clean up after a server');
      else isLate(error, 'could not clean up after a server yet');
    }
    try {
      const nothing = { url: null, spawnerState: {}, startedAt: null };
      await store.moveTo(server.id, 'stopped', { failure, ...nothing });
      if (wasUntold && untold === undefined) log.info('recorded late that a server is stopped');
    } catch (error) {
      isLate(error, 'could not record yet that a server is stopped');
    }
  }

  async function catchUp(): Promise<void> {
    await then(async () => {
      if (state !== 'stopped' || untold === undefined) return;
      await recordStopped(untold.failure);
      // A start that came in the meantime needs the unit.
      if (state === 'stopped') settle();
    });
  }

  const unit: ServerUnit = {
    server,
    onOutput,
    catchUp,
    get isRecordBehind() {
      return untold !== undefined;
    },
    get state() {
      return state;
    },
    get spawnerState() {
      return spawned?.state;
    },
    get isQueued() {
      return state === 'starting' && phase === 'pending';
    },
    get progress() {
      return start?.steps;
    },
    get ready() {
      return ready;
    },

    async start(plan) {
      if (state !== 'stopped') throw new HubError('conflict', `The server is ${state}.`);
      state = 'starting';
      output = [];
      const current = { cancel: new AbortController(), steps: createProgressLog() };
      start = current;
      const claimed = Promise.withResolvers<void>();
      ready = then(async () => {
        try {
          await claim(plan);
          claimed.resolve();
        } catch (error) {
          current.steps.add({ progress: 100, failed: true, message: failureOf(error).message });
          current.steps.end();
          settle();
          claimed.reject(error);
          throw error;
        }
        await run(plan, current);
      });
      // Those who wait for it learn of the failure; none has to wait.
      ready.catch(() => undefined);
      await claimed.promise;
    },

    async stop() {
      if (state === 'starting') {
        state = 'stopping';
        start?.cancel.abort();
        await recordStopping();
      } else if (state === 'running' && spawned !== undefined) {
        state = 'stopping';
        const { state: spawnerState } = spawned;
        events.onUnavailable(server);
        const recorded = recordStopping();
        void then(async () => {
          await recorded;
          await end(spawnerState);
          await recordStopped(null);
          log.info('server stopped');
          settle();
        });
        await recorded;
      } else if (state === 'stopped') {
        void catchUp();
      }
      return { stopped: transition };
    },

    adopt(running) {
      events.onReady(server, running.url);
      spawned = running;
      state = 'running';
      watch(running);
    },

    async clearAway(message, { endings, recordings }) {
      state = 'stopping';
      events.onUnavailable(server);
      await then(async () => {
        await endings(() => end(server.spawnerState));
        // Killed in the middle of a start, the earlier hub may not have stored what it started.
        if (server.state !== 'running') await endings(discard);
        await recordings(() => recordStopped(message === null ? null : failureOf(message)));
        settle();
      });
    },

    async poll() {
      const running = spawned;
      if (running === undefined || state !== 'running') return;
      const result = await spawner.poll(running.state);
      if (result.running === 'unknown') {
        // Said once: an engine may be down for hours.
        if (unknownSince === undefined) log.warn({ reason: result.reason }, unknownMessage);
        unknownSince ??= new Date();
        return;
      }
      if (unknownSince !== undefined) log.info({ unknownSince }, 'the engine of a server answers');
      unknownSince = undefined;
      if (!result.running) {
        const { exit } = result;
        await onDeath(
          running,
          exit === undefined
            ? 'The server is no longer running.'
            : `The server ended${describeExit(exit)}.`,
        );
        return;
      }
      const stranger = await running.findStranger?.();
      // Once may be a server that is about to listen again.
      if (stranger !== undefined && stranger === lastStranger) {
        await onDeath(running, `Another program has the address of the server: ${stranger}.`);
      }
      lastStranger = stranger;
    },

    release() {
      isReleased = true;
    },
  };
  return unit;
}
