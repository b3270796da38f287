import type { ContainerInfo } from 'dockerode';
import { HubError } from '../../platform/errors.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import { text } from '../../platform/texts/text.ts';
import { systemClock } from '../processes/clock.ts';
import { hubLabels } from './create-request.ts';
import type { Engine } from './engine.ts';
import { engineMessage, isDoneAlready, isEngineAnswer, isMissing } from './engine-errors.ts';
import { readCondition } from './watch-container.ts';

/** The containers of one hub on an engine: no other one is ever touched. */
export interface Containers {
  /** Those of a server, or of all servers; also those that have ended. */
  list(serverId?: string): Promise<readonly ContainerInfo[]>;
  /** Ends a container and what runs in it. Rejects when it is still running after that; idempotent. */
  end(container: string, options: EndOptions): Promise<void>;
  /** Freezes the processes of a running container, or lets them go on. Rejects where it is not so after that; idempotent. */
  setPaused(container: string, isPaused: boolean): Promise<void>;
  /** Removes a container, running or not; rejects when it is still there after that. Idempotent. */
  remove(container: string): Promise<void>;
}

export interface EndOptions {
  readonly graceMs: number;
  readonly signal?: AbortSignal;
  /** Whether it is removed too; when that fails, it is left for later. */
  readonly removes: boolean;
}

const removalPatienceMs = 5_000;
const removalPollMs = 100;

export function createContainers(engine: Engine, hubId: string, log: PluginLog): Containers {
  async function stop(container: string, { graceMs, signal }: EndOptions): Promise<void> {
    const t = Math.ceil(graceMs / 1000);
    try {
      await engine.call(
        (docker, abortSignal) => docker.getContainer(container).stop({ t, abortSignal }),
        { extraMs: graceMs, ...(signal === undefined ? {} : { signal }) },
      );
    } catch (thrown) {
      if (!isMissing(thrown) && !isDoneAlready(thrown)) throw thrown;
    }
  }

  async function isThere(container: string): Promise<boolean> {
    try {
      await engine.call((docker, abortSignal) =>
        docker.getContainer(container).inspect({ abortSignal }),
      );
      return true;
    } catch (thrown) {
      if (isMissing(thrown)) return false;
      throw thrown;
    }
  }

  async function remove(container: string): Promise<void> {
    let failure: unknown;
    try {
      await engine.call((docker, abortSignal) =>
        docker.getContainer(container).remove({ force: true, v: true, abortSignal }),
      );
    } catch (thrown) {
      if (isMissing(thrown)) return;
      if (!isEngineAnswer(thrown)) throw thrown;
      failure = thrown;
    }
    // It is seen to be gone: another start of the server would otherwise run beside it.
    const isUnderWay = failure === undefined || isDoneAlready(failure);
    const deadline = systemClock.monotonicMs() + (isUnderWay ? removalPatienceMs : 0);
    while (await isThere(container)) {
      if (systemClock.monotonicMs() >= deadline) throw unremoved(container, failure);
      await systemClock.sleep(removalPollMs);
    }
  }

  async function setPaused(container: string, isPaused: boolean): Promise<void> {
    try {
      await engine.call((docker, abortSignal) => {
        const meant = docker.getContainer(container);
        return isPaused ? meant.pause({ abortSignal }) : meant.unpause({ abortSignal });
      });
    } catch (thrown) {
      if (!isEngineAnswer(thrown) || isMissing(thrown)) throw thrown;
      // Engines answer with one status or another what is so already.
      const { info } = await readCondition(engine, container);
      if (info?.State.Paused !== isPaused) throw thrown;
    }
  }

  return {
    remove,
    setPaused,

    async list(serverId) {
      const label = [
        `${hubLabels.hub}=${hubId}`,
        ...(serverId === undefined ? [] : [`${hubLabels.serverId}=${serverId}`]),
      ];
      return engine.call((docker, abortSignal) =>
        docker.listContainers({ all: true, filters: { label }, abortSignal }),
      );
    },

    async end(container, options) {
      let failure: unknown;
      // It gets its signal only when it goes on.
      await setPaused(container, false).catch(() => undefined);
      await stop(container, options).catch((thrown: unknown) => {
        if (!isEngineAnswer(thrown)) throw thrown;
        failure = thrown;
      });
      if (options.removes || failure !== undefined) {
        await remove(container).catch((thrown: unknown) => {
          if (!(thrown instanceof HubError) || thrown.code !== 'upstream_failed') throw thrown;
          failure = thrown;
        });
      }
      if (failure === undefined && options.removes) return;
      if ((await readCondition(engine, container)).running) throw unended(container, failure);
      if (options.removes && (await isThere(container))) {
        log.warn({ container, reason: engineMessage(failure) }, 'container left for later removal');
      }
    },
  };
}

/** `failure` is what the engine answered, undefined where that was a success. */
function unremoved(container: string, failure: unknown): HubError {
  const name = container.slice(0, 12);
  const message =
    failure === undefined
      ? text`The container ${name} is still there, though the engine says that it removed it.`
      : text`The container ${name} could not be removed: ${engineMessage(failure)}.`;
  return new HubError('upstream_failed', message, { cause: failure });
}

function unended(container: string, failure: unknown): HubError {
  if (failure instanceof HubError) return failure;
  const name = container.slice(0, 12);
  const message =
    failure === undefined
      ? text`The container ${name} still runs, though the engine says that it ended it.`
      : text`The container ${name} could not be ended: ${engineMessage(failure)}.`;
  return new HubError('upstream_failed', message, { cause: failure });
}
