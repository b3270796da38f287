import { isDeepStrictEqual } from 'node:util';
import type { Limiter } from '../../platform/concurrency/limiter.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { HubError, messageOf } from '../../platform/errors.ts';
import { isSamePhrase, type Phrase } from '../../platform/texts/text.ts';
import type { SpawnPhase } from '../../plugin/host/spawn-request.ts';
import type { SpawnedServer, Spawner, SpawnerState } from '../../plugin/host/spawner.ts';
import { createOutputFeed, type OutputSource } from '../../spawning/processes/output-feed.ts';
import { createEngineSilence } from './engine-silence.ts';
import { createProgressLog, type ProgressLog } from './progress-log.ts';
import type { Server, ServerFailure, ServerState } from './server.ts';
import { createServerRecord, type ServerRecordDeps } from './server-record.ts';
import { endMessage, type LaunchPlan, startError, startServer } from './server-start.ts';
import { createStartDuration, type StartDuration } from './start-duration.ts';
import { addressTaken, isAlready, serverReady, startCancelled } from './start-texts.ts';
import type { UnitEvents } from './unit-events.ts';

/** One server's life in this process: at most one transition at a time. */
export interface ServerUnit {
  readonly server: Server;
  readonly state: ServerState;
  /** Of what runs or begins to run, also while it does not answer yet and while it ends. */
  readonly spawnerState: SpawnerState | undefined;
  /** Since when the server is this instance's, by the monotonic clock; undefined before. */
  readonly ownedSinceMs: number | undefined;
  /** What it writes. */
  readonly output: OutputSource;
  /** The steps of a start under way. */
  readonly progress: ProgressLog | undefined;
  /** Resolves when the start under way made the server ready, rejects when it failed. */
  readonly ready: Promise<void>;
  /** Takes the server for a start and begins it. Throws what keeps this instance from it. */
  start(plan: LaunchPlan): Promise<void>;
  /** Begins to end the server, also one that is starting; `stopped` tells when it is gone. */
  stop(): Promise<{ readonly stopped: Promise<void> }>;
  /** Takes over a server that an earlier hub started. */
  adopt(spawned: SpawnedServer): void;
  /** Goes on with a start of an earlier hub; false where that cannot be. */
  resume(): boolean;
  /** Leaves a start that waits to the next hub; false where that could not go on with it. */
  leaveWaiting(): boolean;
  /** Ends and clears away what an earlier hub left of a server, when the limiter has room. */
  clearAway(
    failure: Phrase | null,
    limits: { readonly endings: Limiter; readonly recordings: Limiter },
  ): Promise<void>;
  poll(): Promise<void>;
  /** Tells the database of an end that it could not be told of. Never throws. */
  catchUp(): Promise<void>;
  /** Tells of the output of an adopted server. */
  onOutput(line: string): void;
  /**
   * Parts with a server that another instance took over: ends what runs here, unless that is what the other
   * one runs now.
   */
  partWith(runsRemotely: SpawnerState | undefined): void;
  /** Leaves a running server alone from now on. */
  release(): void;
}

/** A start under way. */
interface Start {
  readonly cancel: AbortController;
  readonly steps: ProgressLog;
  /** Undefined where it began at another hub. */
  readonly duration?: StartDuration;
}

const maxFailureCharacters = 8 * 1024;
const retainedOutput = { maxLines: 500, maxCharacters: 64 * 1024 };
/** What a spawner has beyond the grace of its processes before a stop counts as failed. */
const stopReserveMs = 10_000;

export function createServerUnit(
  server: Server,
  deps: ServerRecordDeps & {
    readonly spawner: Spawner;
    /** How to go on with a start of an earlier hub; undefined where its spawner cannot. */
    readonly planResume?: (server: Server) => LaunchPlan | undefined;
    readonly events: UnitEvents;
    readonly stopGraceMs: number;
    /** The server is stopped and the database knows: the unit holds nothing any more. */
    readonly onSettled: (unit: ServerUnit) => void;
    /** The server is stopped, which the database could not be told. */
    readonly onBehind: (unit: ServerUnit) => void;
  },
): ServerUnit {
  const { spawner, events, stopGraceMs } = deps;
  const log = deps.log.child({ user: server.userName, server: server.name });
  const record = createServerRecord(server, deps, log);
  const isSilent = createEngineSilence(log);
  let state: ServerState = 'stopped';
  let isReleased = false;
  let phase: SpawnPhase | undefined;
  let hasKeptState = false;
  /** The transition under way or the last one; never rejects. */
  let transition: Promise<void> = Promise.resolve();
  let ready: Promise<void> = Promise.resolve();
  let start: Start | undefined;
  let launched: SpawnedServer | undefined;
  /** What is launched and answers. */
  let spawned: SpawnedServer | undefined;
  const output = createOutputFeed(retainedOutput);
  // Outlives the start, of which it must not hold anything.
  const onOutput = (line: string) => output.push(line);
  let lastForeignProcess: Phrase | undefined;

  const failureOf = (message: Phrase): ServerFailure => ({
    message,
    at: new Date(),
    output: output.tail(50, maxFailureCharacters),
  });

  function settle(): void {
    state = 'stopped';
    launched = spawned = undefined;
    start = undefined;
    phase = undefined;
    hasKeptState = false;
    if (record.isBehind()) deps.onBehind(unit);
    else deps.onSettled(unit);
  }

  /** Begins a transition after the one before it. */
  function then(work: () => Promise<void>): Promise<void> {
    const done = transition.then(work);
    transition = done.catch(() => undefined);
    return done;
  }

  function watch(running: SpawnedServer): void {
    const { exited, ended = exited } = running;
    if (exited !== undefined) void ended?.then(() => onDeath(running, exited.then(endMessage)));
  }

  async function onDeath(dead: SpawnedServer, reason: Phrase | Promise<Phrase>): Promise<void> {
    if (spawned !== dead || state !== 'running' || isReleased) return;
    state = 'stopping';
    events.onUnavailable(server);
    await then(async () => {
      const failure = failureOf(await reason);
      log.warn({ reason: failure.message, output: failure.output.slice(-5) }, 'server died');
      await end(dead.state);
      await record.stopped(failure);
      settle();
    });
  }

  async function run(plan: LaunchPlan, { cancel, steps, duration }: Start): Promise<void> {
    const startedAt = performance.now();
    const seconds = () => (performance.now() - startedAt) / 1000;
    try {
      const running = await startServer({
        plan,
        cancelled: cancel.signal,
        isOurs: record.isSurelyOurs,
        steps,
        onOutput,
        onPhase,
        async keepState(spawnerState) {
          await record.keepState(spawnerState);
          hasKeptState = true;
        },
        async onLaunched(server_) {
          launched = server_;
          phase = undefined;
          await record.launched(server_);
        },
        endLate: end,
        windUpMs: stopGraceMs + stopReserveMs,
      });
      await record.running(duration && { ms: duration.ms(), profile: plan.profile });
      cancel.signal.throwIfAborted();
      const url = events.onReady({ ...server, userOptions: plan.userOptions }, running);
      spawned = running;
      state = 'running';
      start = undefined;
      watch(running);
      steps.add({ progress: 100, ready: true, message: serverReady, url });
      events.onStartEnded('ready', seconds());
    } catch (error) {
      // What another instance goes on with is not to be ended here.
      const isOver = () => isReleased || cancel.signal.aborted;
      if (hasKeptState && !(await record.isOurs(isOver))) isReleased = true;
      if (isReleased) throw error;
      const isCancelled = cancel.signal.aborted;
      const failure = failureOf(isCancelled ? startCancelled : messageOf(error));
      state = 'stopping';
      events.onUnavailable(server);
      await record.stopping();
      if (launched !== undefined) await end(launched.state);
      await record.stopped(isCancelled ? null : failure);
      steps.add({ progress: 100, failed: true, message: failure.message, output: failure.output });
      events.onStartEnded(isCancelled ? 'cancelled' : 'failed', seconds());
      const why = { err: error, output: failure.output.slice(-5) };
      if (isCancelled) log.info('server start cancelled');
      else log.warn({ ...why, reason: failure.message }, 'server start failed');
      settle();
      if (isCancelled) throw new HubError('conflict', startCancelled);
      throw startError(error, failure.message);
    } finally {
      steps.end();
    }
  }

  function onPhase(next: SpawnPhase): void {
    const [isQueued, wasQueued] = [next, phase].map((each) => each === 'pending');
    phase = next;
    if (isQueued === wasQueued) return;
    start?.duration?.onQueued(isQueued === true);
    record
      .keepQueued(isQueued === true)
      .catch((error: unknown) => log.warn({ err: error }, 'could not record that a server waits'));
  }

  async function end(spawnerState: SpawnerState): Promise<void> {
    try {
      const signal = timeLimit(stopGraceMs + stopReserveMs);
      await spawner.stop(spawnerState, { graceMs: stopGraceMs, signal });
    } catch (error) {
      log.error({ err: error }, 'server could not be stopped, processes may be left');
    }
  }

  async function discard(): Promise<void> {
    try {
      await spawner.discard?.(server.id, { graceMs: stopGraceMs, isOurs: record.isSurelyOurs });
    } catch (error) {
      log.error({ err: error }, 'processes of a server may be left');
    }
  }

  async function catchUp(): Promise<void> {
    await then(async () => {
      if (state !== 'stopped' || !record.isBehind()) return;
      await record.catchUp();
      // A start that came in the meantime needs the unit.
      if (state === 'stopped') settle();
    });
  }

  const unit: ServerUnit = {
    server,
    output,
    onOutput,
    catchUp,
    get state() {
      return state;
    },
    get spawnerState() {
      return launched?.state;
    },
    get ownedSinceMs() {
      return record.ownedSinceMs();
    },
    get progress() {
      return start?.steps;
    },
    get ready() {
      return ready;
    },

    async start(plan) {
      if (state !== 'stopped') throw new HubError('conflict', isAlready(state));
      state = 'starting';
      output.restart();
      const duration = createStartDuration();
      const current = { cancel: new AbortController(), steps: createProgressLog(), duration };
      start = current;
      const claimed = Promise.withResolvers<void>();
      ready = then(async () => {
        try {
          await record.claim(plan);
          claimed.resolve();
        } catch (error) {
          current.steps.add({ progress: 100, failed: true, message: messageOf(error) });
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
        await record.stopping();
      } else if (state === 'running' && spawned !== undefined) {
        state = 'stopping';
        const { state: spawnerState } = spawned;
        events.onUnavailable(server);
        const recorded = record.stopping();
        void then(async () => {
          await recorded;
          await end(spawnerState);
          await record.stopped(null);
          log.info('server stopped');
          settle();
        });
        await recorded;
      } else if (state === 'stopped') {
        void catchUp();
      }
      return { stopped: transition };
    },

    leaveWaiting() {
      const isWaiting = state === 'starting' && hasKeptState && spawned === undefined;
      if (isWaiting) unit.release();
      return isWaiting;
    },

    resume() {
      const plan = deps.planResume?.(server);
      if (plan === undefined) return false;
      record.own();
      state = 'starting';
      hasKeptState = true;
      const current = { cancel: new AbortController(), steps: createProgressLog() };
      start = current;
      ready = then(() => run(plan, current));
      ready.catch(() => undefined);
      return true;
    },

    adopt(running) {
      record.own();
      events.onReady(server, running);
      launched = spawned = running;
      state = 'running';
      watch(running);
    },

    async clearAway(message, { endings, recordings }) {
      record.own();
      state = 'stopping';
      events.onUnavailable(server);
      await then(async () => {
        await endings(() => end(server.spawnerState));
        // Killed in the middle of a start, the earlier hub may not have stored what it started.
        if (server.state !== 'running') await endings(discard);
        await recordings(() => record.stopped(message === null ? null : failureOf(message)));
        settle();
      });
    },

    async poll() {
      const running = spawned;
      if (running === undefined || state !== 'running') return;
      const result = await spawner.poll(running.state);
      if (isSilent(result)) return;
      if (!result.running) return onDeath(running, endMessage(result.exit));
      const foreignProcess = await running.findForeignProcess?.();
      // Once may be a server that is about to listen again.
      if (foreignProcess !== undefined && isSamePhrase(foreignProcess, lastForeignProcess))
        await onDeath(running, addressTaken(foreignProcess));
      lastForeignProcess = foreignProcess;
    },

    partWith(runsRemotely) {
      // What it kept is what the other one goes on with.
      if (unit.leaveWaiting()) settle();
      else if (state === 'starting') void unit.stop();
      if (state !== 'running' || spawned === undefined) return;
      const { state: spawnerState } = spawned;
      events.onUnavailable(server);
      if (isDeepStrictEqual(JSON.parse(JSON.stringify(spawnerState)), runsRemotely)) {
        log.info('server left to the instance that took it over');
        settle();
        return;
      }
      state = 'stopping';
      log.warn('stale server ended');
      void then(async () => {
        await end(spawnerState);
        settle();
      });
    },

    release() {
      isReleased = true;
      start?.steps.end();
    },
  };
  return unit;
}
