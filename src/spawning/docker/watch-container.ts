import type { ContainerInspectInfo } from 'dockerode';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { ServerExit } from '../../plugin/host/spawner.ts';
import { systemClock } from '../processes/clock.ts';
import type { ContainerEvents } from './container-events.ts';
import { followOutput, readLastOutput } from './container-output.ts';
import { type ContainerCondition, conditionOf, removedExit } from './container-state.ts';
import type { Engine } from './engine.ts';
import { engineMessage, isEngineAnswer, isMissing } from './engine-errors.ts';

/** Asks how a container is; one that is not there has ended. Rejects when the engine does not say. */
export async function readCondition(
  engine: Engine,
  container: string,
  signal?: AbortSignal,
): Promise<ContainerCondition & { readonly info?: ContainerInspectInfo }> {
  try {
    const info = await engine.call(
      (docker, abortSignal) => docker.getContainer(container).inspect({ abortSignal }),
      signal === undefined ? {} : { signal },
    );
    return { ...conditionOf(info), info };
  } catch (thrown) {
    if (isMissing(thrown)) return { running: false, exit: removedExit };
    throw thrown;
  }
}

export interface WatchedContainer {
  readonly container: string;
  /** Whether it has just been started: its output is followed from the beginning. */
  readonly isNew: boolean;
  readonly onOutput: (line: string, stream: 'stdout' | 'stderr') => void;
  /** How a container ended for the hub that was restarted and has another address. */
  readonly movedExit: (info: ContainerInspectInfo) => Promise<ServerExit | undefined>;
  /** Told when nothing is to be sent to its address any more: before the last output is there. */
  readonly onEnd: () => void;
  readonly signal: AbortSignal;
}

export interface WatchTools {
  readonly engine: Engine;
  readonly events: ContainerEvents;
  readonly log: PluginLog;
}

/** How long output is followed line by line: a connection for each server would take memory for ever. */
const followMs = 60_000;
/** How long the last lines of a container that has ended may be in coming. */
const lastLinesMs = 2_000;

/**
 * Tells how a container ended; never resolves when the signal aborts first, and never rejects. Its output is
 * passed on as it comes while the server starts, and the last lines of it when it has ended.
 */
export async function watchContainer(
  watched: WatchedContainer,
  tools: WatchTools,
): Promise<ServerExit> {
  const { container, signal, movedExit, onEnd } = watched;
  const { engine, events } = tools;
  const output = startReading(watched, tools);

  for (;;) {
    const changed = events.next(container, signal);
    try {
      const condition = await readCondition(engine, container, signal);
      const exit = condition.running
        ? condition.info && (await movedExit(condition.info))
        : condition.exit;
      if (exit !== undefined) {
        onEnd();
        await output.finish();
        return exit;
      }
    } catch {
      // The engine is away, and its containers may outlive it: it is asked again when it is back.
    }
    await changed;
    if (signal.aborted) return new Promise<never>(() => undefined);
  }
}

/** Follows the output for a while; `finish` waits for the rest of it, or asks for the last lines. */
function startReading(
  { container, isNew, onOutput, signal }: WatchedContainer,
  { engine, log }: WatchTools,
): { finish(): Promise<void> } {
  let readUntilMs: number | undefined = isNew ? undefined : systemClock.now();
  const warn = (thrown: unknown): void => {
    if (!isEngineAnswer(thrown) || isMissing(thrown)) return;
    log.warn({ container, reason: engineMessage(thrown) }, 'container output cannot be read');
  };
  const enough = new AbortController();
  const timer = isNew ? setTimeout(stopReading, followMs).unref() : undefined;
  function stopReading(): void {
    readUntilMs = systemClock.now();
    enough.abort();
  }
  const limit = { signal: AbortSignal.any([signal, enough.signal]), onLine: onOutput };
  const reading = isNew ? followOutput(engine, container, limit).catch(warn) : Promise.resolve();

  return {
    async finish() {
      clearTimeout(timer);
      const patience = new AbortController();
      await Promise.race([reading, systemClock.sleep(lastLinesMs, patience.signal)]);
      patience.abort();
      enough.abort();
      if (readUntilMs === undefined) return;
      await readLastOutput(engine, container, readUntilMs, onOutput).catch(warn);
    },
  };
}
