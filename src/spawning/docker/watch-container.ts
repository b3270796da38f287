import type { ContainerInspectInfo } from 'dockerode';
import type { PluginLog } from '../../logging/plugin-log.ts';
import type { ServerExit } from '../../plugin-host/spawner.ts';
import { systemClock } from '../../processes/clock.ts';
import { followOutput } from './container-output.ts';
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
  readonly tail: number | 'all';
  readonly onOutput: (line: string, stream: 'stdout' | 'stderr') => void;
  readonly signal: AbortSignal;
}

const firstPauseMs = 250;
const longestPauseMs = 15_000;

/**
 * Follows the output of a container to its end and tells how it ended; never resolves when the signal
 * aborts first, and never rejects. The end of the output is the end of the container, so that one
 * connection tells both; where the engine keeps no output it is asked to wait for the end.
 */
export async function watchContainer(
  engine: Engine,
  { container, tail, onOutput, signal }: WatchedContainer,
  log: PluginLog,
): Promise<ServerExit> {
  let canRead = true;
  let pauseMs = firstPauseMs;
  let from = tail;

  for (;;) {
    try {
      if (canRead) await followOutput(engine, container, { tail: from, signal, onLine: onOutput });
      else await untilEnd(engine, container, signal);
      from = 0;
      const condition = await readCondition(engine, container, signal);
      if (!condition.running) return condition.exit;
    } catch (thrown) {
      if (isMissing(thrown)) return removedExit;
      if (canRead && isEngineAnswer(thrown)) {
        canRead = false;
        log.warn(
          { container, reason: engineMessage(thrown) },
          'the output of a container cannot be read',
        );
      }
    }
    // Either the engine was away, or it broke off: containers may outlive it.
    await systemClock.sleep(pauseMs, signal);
    if (signal.aborted) return new Promise<never>(() => undefined);
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

async function untilEnd(engine: Engine, container: string, signal: AbortSignal): Promise<void> {
  await engine.call((docker) => docker.getContainer(container).wait({ abortSignal: signal }), {
    signal,
    isStream: true,
  });
}
