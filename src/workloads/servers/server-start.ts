import { setTimeout as sleep } from 'node:timers/promises';
import { HubError, TextError } from '../../platform/errors.ts';
import { inSeconds } from '../../platform/texts/seconds.ts';
import { type Phrase, type Text, text } from '../../platform/texts/text.ts';
import type { SpawnPhase, SpawnProgress } from '../../plugin/host/spawn-request.ts';
import type { ServerExit, SpawnedServer, SpawnerState } from '../../plugin/host/spawner.ts';
import type { ProgressLog } from './progress-log.ts';
import { createStartClock } from './start-clock.ts';

/** What a unit needs to start a server, prepared where users, tokens and configuration are known. */
export interface LaunchPlan {
  /** Starts the server; resolves when it has an address. */
  launch(deps: {
    readonly signal: AbortSignal;
    readonly onOutput: (line: string) => void;
    readonly onProgress: (event: SpawnProgress) => void;
    /** Stores what the next hub needs to go on with this start. */
    readonly keepState: (state: SpawnerState) => Promise<void>;
    /** Whether no other instance can have taken the server over. */
    readonly isOurs: () => boolean;
  }): Promise<SpawnedServer>;
  /** Resolves when the server itself answers at its address; rejects when it takes too long. */
  waitUntilReady(
    server: Pick<SpawnedServer, 'url' | 'findForeignProcess'>,
    signal: AbortSignal,
  ): Promise<void>;
  readonly startTimeoutMs: number;
  /** Name of the chosen profile. */
  readonly profile?: string | undefined;
  /** The choice this start is made with, to be stored together with the start. */
  readonly userOptions: Readonly<Record<string, unknown>>;
}

/** One start of a server, up to its first answer. */
export interface ServerStart {
  readonly plan: LaunchPlan;
  readonly cancelled: AbortSignal;
  readonly isOurs: () => boolean;
  readonly steps: ProgressLog;
  readonly onOutput: (line: string) => void;
  readonly onPhase: (phase: SpawnPhase) => void;
  readonly keepState: (state: SpawnerState) => Promise<void>;
  /** The server has an address: from now on there is something to end. */
  readonly onLaunched: (launched: SpawnedServer) => Promise<void>;
  /** Ends a server that came too late. */
  readonly endLate: (state: SpawnerState) => Promise<void>;
  /** How long a launch that is given up has to wind up. */
  readonly windUpMs: number;
}

/** Launches a server and waits until it answers. Throws when it does not, or is cancelled. */
export async function startServer(start: ServerStart): Promise<SpawnedServer> {
  const { plan, cancelled, steps } = start;
  cancelled.throwIfAborted();
  steps.add({ progress: 0, message: text`Server requested.` });
  const launched = await launch(start);
  await start.onLaunched(launched);
  cancelled.throwIfAborted();
  steps.add({ progress: 60, message: text`The server has started; waiting for it to answer.` });
  await waitUntilReady(plan, launched, cancelled);
  cancelled.throwIfAborted();
  return launched;
}

async function launch(start: ServerStart): Promise<SpawnedServer> {
  const { plan, cancelled, isOurs, steps, onOutput, keepState } = start;
  using clock = createStartClock(plan.startTimeoutMs);
  const signal = AbortSignal.any([cancelled, clock.signal]);
  let lastMessage: Phrase = '';
  const launching = plan.launch({
    signal,
    onOutput,
    keepState,
    isOurs,
    onProgress(event) {
      clock.onProgress(event);
      if (event.phase !== undefined) {
        start.onPhase(event.phase);
        lastMessage = event.message;
      }
      steps.add(event);
    },
  });
  // The loser of the race may still reject after it: that is not an unhandled failure.
  launching.catch(() => undefined);
  const givenUp = Promise.withResolvers<'given up'>();
  const giveUp = () => givenUp.resolve('given up');
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();

  const first = await Promise.race([launching, givenUp.promise]);
  // A signal that somebody listens to is kept until it is aborted, and with it all that belongs to this start.
  signal.removeEventListener('abort', giveUp);
  if (first !== 'given up') return first;
  const patience = new AbortController();
  const late = await Promise.race([
    launching.catch(() => undefined),
    sleep(start.windUpMs, 'still launching' as const, { signal: patience.signal, ref: false }),
  ]);
  patience.abort();
  // A spawner that does not listen to the signal comes back with a server that is no longer wanted.
  if (late === 'still launching') {
    launching.then(
      ({ state }) => start.endLate(state),
      () => undefined,
    );
  } else if (late !== undefined) await start.endLate(late.state);
  cancelled.throwIfAborted();
  const duration = inSeconds(String(plan.startTimeoutMs / 1000));
  const why =
    lastMessage === ''
      ? text`The server did not start within ${duration}.`
      : text`The server did not start within ${duration}. The last step: ${lastMessage}`;
  throw new TextError(why);
}

async function waitUntilReady(
  plan: LaunchPlan,
  launched: SpawnedServer,
  cancelled: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const died = launched.exited?.then((exit) => {
    throw new TextError(earlyEnd(exit));
  });
  died?.catch(() => undefined);
  try {
    const ready = plan.waitUntilReady(launched, AbortSignal.any([cancelled, over.signal]));
    ready.catch(() => undefined);
    await (died === undefined ? ready : Promise.race([ready, died]));
  } finally {
    over.abort();
  }
}

/** The `spawn_failed` of a start; what a spawner says of the request itself, such as `forbidden`, stays that. */
export function startError(error: unknown, message: Phrase): HubError {
  if (!(error instanceof HubError)) return new HubError('spawn_failed', message, { cause: error });
  if (error.code !== 'upstream_failed') return error;
  const { hint } = error.shown;
  return new HubError('spawn_failed', message, {
    cause: error,
    ...(hint !== undefined && { hint }),
  });
}

/** What is said of a server that has ended by itself. */
export function endMessage(exit: ServerExit | undefined): Text {
  if (exit === undefined) return text`The server is no longer running.`;
  const { code, signal, reason } = exit;
  if (reason !== undefined) return text`The server ended: ${reason}.`;
  if (signal !== null) return text`The server ended by signal ${signal}.`;
  return code === null
    ? text`The server ended with an unknown exit code.`
    : text`The server ended with exit code ${String(code)}.`;
}

function earlyEnd({ code, signal, reason }: ServerExit): Text {
  if (reason !== undefined) return text`The server ended before it was ready: ${reason}.`;
  if (signal !== null) return text`The server ended by signal ${signal} before it was ready.`;
  return code === null
    ? text`The server exited before it was ready (code unknown).`
    : text`The server exited (code ${String(code)}) before it was ready.`;
}
