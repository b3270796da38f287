import type { Logger } from 'pino';
import { HubError } from '../errors.ts';
import type { SpawnedServer, Spawner, SpawnerState } from '../spawning/spawner.ts';
import { createProgressLog, type ProgressLog } from './progress-log.ts';
import type { Server, ServerFailure, ServerProgress, ServerState } from './server.ts';
import type { ServerStore } from './server-store.ts';

/** What a unit needs to start a server, prepared by whoever knows users, tokens and configuration. */
export interface LaunchPlan {
  /** Starts the server; resolves when it has an address. */
  launch(parts: {
    readonly signal: AbortSignal;
    readonly onOutput: (line: string) => void;
    readonly onProgress: ProgressLog['add'];
  }): Promise<SpawnedServer>;
  /** Resolves when the server at this address answers; rejects when it takes too long. */
  waitUntilReady(url: string, signal: AbortSignal): Promise<void>;
  readonly startTimeoutMs: number;
}

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
  /** The steps of the current or the last failed start. */
  readonly progress: ProgressLog | undefined;
  /** The steps of the current start so far. */
  readonly recentProgress: readonly ServerProgress[];
  /** Begins a start; the promise resolves when the server is ready and rejects when it failed. */
  start(plan: LaunchPlan): Promise<void>;
  /** Ends the server, also one that is starting; resolves when it is stopped. */
  stop(): Promise<void>;
  /** Takes over a server that an earlier hub started. */
  adopt(spawned: SpawnedServer): void;
  /** Looks whether the server is still there. */
  poll(): Promise<void>;
}

const outputLines = 50;

/** Creates the unit of a stored server. */
export function createServerUnit(
  server: Server,
  parts: {
    readonly store: ServerStore;
    readonly spawner: Spawner;
    readonly events: UnitEvents;
    readonly stopGraceMs: number;
    readonly log: Logger;
  },
): ServerUnit {
  const { store, spawner, events, stopGraceMs } = parts;
  const log = parts.log.child({ user: server.userName, server: server.name });
  let state: ServerState = 'stopped';
  let transition: Promise<void> = Promise.resolve();
  let cancelStart: AbortController | undefined;
  let spawned: SpawnedServer | undefined;
  let progress: ProgressLog | undefined;
  let output: string[] = [];
  /** The database could not be told that the server is stopped; it is told before the next start. */
  let isRecordBehind = false;

  function onOutput(line: string): void {
    output.push(line);
    if (output.length > outputLines * 2) output = output.slice(-outputLines);
  }

  const failureOf = (error: unknown): ServerFailure => ({
    message: error instanceof Error ? error.message : String(error),
    at: new Date(),
    output: output.slice(-outputLines),
  });

  function watch(running: SpawnedServer): void {
    void running.exited?.then((exit) => {
      const how = exit.signal === null ? `with exit code ${exit.code}` : `by signal ${exit.signal}`;
      return onDeath(running, `The server ended ${how}.`);
    });
  }

  async function onDeath(dead: SpawnedServer, message: string): Promise<void> {
    if (spawned !== dead || state !== 'running') return;
    state = 'stopped';
    spawned = undefined;
    events.onUnavailable(server);
    const failure = failureOf(message);
    log.warn({ output: failure.output.slice(-5) }, `${message} Its route is closed.`);
    const work = (async () => {
      try {
        await spawner.stop(dead.state, {
          graceMs: stopGraceMs,
          signal: AbortSignal.timeout(stopGraceMs + 10_000),
        });
      } catch (error) {
        log.warn({ err: error }, 'could not clean up after a server that ended');
      }
      await recordStopped(failure);
    })();
    transition = work;
    await work;
  }

  async function run(
    plan: LaunchPlan,
    controller: AbortController,
    steps: ProgressLog,
  ): Promise<void> {
    const startedAt = performance.now();
    const timeout = AbortSignal.timeout(plan.startTimeoutMs);
    const signal = AbortSignal.any([controller.signal, timeout]);
    let launched: SpawnedServer | undefined;
    try {
      steps.add({ progress: 0, message: 'Server requested.' });
      launched = await plan.launch({ signal, onOutput, onProgress: steps.add });
      await store.update(server.id, {
        url: launched.url,
        spawnerState: launched.state,
        startedAt: new Date(),
      });
      steps.add({ progress: 60, message: 'The server has started; waiting for it to answer.' });
      await waitReady(plan, launched, controller.signal);
      controller.signal.throwIfAborted();
      await store.moveTo(server.id, 'running', { failure: null });
      spawned = launched;
      state = 'running';
      const path = events.onReady(server, launched.url);
      watch(launched);
      steps.add({ progress: 100, ready: true, message: 'The server is ready.', url: path });
      events.onStartEnded('ready', (performance.now() - startedAt) / 1000);
      output = [];
      progress = undefined;
    } catch (error) {
      const isCancelled = controller.signal.aborted;
      const cause = isCancelled
        ? 'The start was cancelled.'
        : timeout.aborted && launched === undefined
          ? `The server did not start within ${plan.startTimeoutMs / 1000} seconds.`
          : error;
      const failure = failureOf(cause);
      state = 'stopping';
      events.onUnavailable(server);
      if (launched !== undefined) await end(launched.state);
      await recordStopped(isCancelled ? null : failure);
      steps.add({ progress: 100, failed: true, message: failure.message, output: failure.output });
      events.onStartEnded(
        isCancelled ? 'cancelled' : 'failed',
        (performance.now() - startedAt) / 1000,
      );
      log.warn(
        { err: error, output: failure.output.slice(-5) },
        `a server did not start: ${failure.message}`,
      );
      throw error instanceof HubError && !isCancelled
        ? error
        : new HubError(isCancelled ? 'conflict' : 'upstream_failed', failure.message, {
            cause: error,
          });
    } finally {
      steps.end();
      cancelStart = undefined;
    }
  }

  /** Takes the server for this process: another process of the hub may want to start it too. */
  async function claim(steps: ProgressLog): Promise<void> {
    try {
      if (isRecordBehind) await recordStopped(null);
      if (await store.moveTo(server.id, 'starting', { failure: null })) return;
      throw new HubError('conflict', 'The server is being started or stopped elsewhere.');
    } catch (error) {
      state = 'stopped';
      steps.add({ progress: 100, failed: true, message: failureOf(error).message });
      steps.end();
      throw error;
    }
  }

  async function waitReady(
    plan: LaunchPlan,
    launched: SpawnedServer,
    cancelled: AbortSignal,
  ): Promise<void> {
    const probe = new AbortController();
    const died = launched.exited?.then((exit) => {
      throw new Error(
        `The server ended before it answered, ${exit.signal === null ? `with exit code ${exit.code}` : `by signal ${exit.signal}`}.`,
      );
    });
    // The loser of the race below may still reject after it: that is no unhandled failure.
    died?.catch(() => undefined);
    try {
      const ready = plan.waitUntilReady(launched.url, AbortSignal.any([cancelled, probe.signal]));
      await (died === undefined ? ready : Promise.race([ready, died]));
    } finally {
      probe.abort();
    }
  }

  async function end(spawnerState: SpawnerState): Promise<void> {
    try {
      await spawner.stop(spawnerState, {
        graceMs: stopGraceMs,
        signal: AbortSignal.timeout(stopGraceMs + 10_000),
      });
    } catch (error) {
      log.error({ err: error }, 'a server could not be stopped; processes of it may be left');
    }
  }

  /** Records the end of a server. It never throws: the server is gone, whatever the database says. */
  async function recordStopped(failure: ServerFailure | null): Promise<void> {
    try {
      await events.onGone(server);
      await store.moveTo(server.id, 'stopped', {
        failure,
        url: null,
        spawnerState: {},
        startedAt: null,
      });
      isRecordBehind = false;
    } catch (error) {
      isRecordBehind = true;
      log.error({ err: error }, 'could not record that a server is stopped');
    }
    state = 'stopped';
  }

  async function shutDown(running: SpawnedServer): Promise<void> {
    events.onUnavailable(server);
    await store.moveTo(server.id, 'stopping').catch((error: unknown) => {
      log.error({ err: error }, 'could not record that a server is stopping');
    });
    await end(running.state);
    spawned = undefined;
    await recordStopped(null);
    log.info('server stopped');
  }

  return {
    get server() {
      return server;
    },
    get state() {
      return state;
    },
    get spawnerState() {
      return spawned?.state;
    },
    get progress() {
      return progress;
    },
    get recentProgress() {
      return progress?.events ?? [];
    },

    start(plan) {
      if (state !== 'stopped') throw new HubError('conflict', `The server is ${state}.`);
      state = 'starting';
      output = [];
      const controller = new AbortController();
      cancelStart = controller;
      const steps = createProgressLog();
      progress = steps;
      const former = transition;
      const started = former.then(async () => {
        await claim(steps);
        await run(plan, controller, steps);
      });
      transition = started.catch(() => undefined);
      return started;
    },

    async stop() {
      if (state === 'stopped') return transition;
      if (state === 'starting') {
        cancelStart?.abort();
        return transition;
      }
      if (state === 'running' && spawned !== undefined) {
        state = 'stopping';
        transition = shutDown(spawned);
      }
      return transition;
    },

    adopt(running) {
      spawned = running;
      state = 'running';
      events.onReady(server, running.url);
      watch(running);
    },

    async poll() {
      const running = spawned;
      if (running === undefined || state !== 'running') return;
      const result = await spawner.poll(running.state);
      if (!result.running) await onDeath(running, 'The server is no longer running.');
    },
  };
}
