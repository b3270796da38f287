import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { messageOf, TextError } from '../../platform/errors.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import { inSeconds } from '../../platform/texts/seconds.ts';
import { text } from '../../platform/texts/text.ts';
import type { SpawnHook, StartSettings } from '../../plugin/host/spawn-hook.ts';
import type { ServerIdentity } from '../../plugin/host/spawn-request.ts';
import { applyStartChanges } from '../../plugin/host/start-changes.ts';

/** The hooks of the operator, around the runs of all servers. */
export interface StartHooks {
  /**
   * Runs before a start; returns the settings as the hooks changed them. Throws an Error for the user that names
   * the hook which failed, took too long or changed what it cannot.
   */
  beforeStart(settings: StartSettings, signal: AbortSignal): Promise<StartSettings>;
  /** Runs when a server is gone; what fails is logged. */
  afterStop(server: ServerIdentity): Promise<void>;
}

export interface NamedSpawnHook {
  readonly name: string;
  readonly hook: SpawnHook;
}

export function createStartHooks(deps: {
  readonly hooks: readonly NamedSpawnHook[];
  readonly timeoutMs: number;
  readonly log: Pick<PluginLog, 'warn'>;
}): StartHooks {
  const { hooks, timeoutMs, log } = deps;

  /** Waits no longer than hooks have, whether they listen to their signal or not. */
  async function within<Result>(
    work: (signal: AbortSignal) => Promise<Result> | undefined,
    cancelled?: AbortSignal,
  ): Promise<Result | undefined> {
    const late = timeLimit(timeoutMs);
    const signal = cancelled === undefined ? late : AbortSignal.any([cancelled, late]);
    signal.throwIfAborted();
    const givenUp = Promise.withResolvers<never>();
    signal.addEventListener('abort', () =>
      givenUp.reject(
        late.aborted
          ? new TextError(text`no answer within ${inSeconds(timeoutMs / 1000)}`)
          : signal.reason,
      ),
    );
    return await Promise.race([work(signal), givenUp.promise]);
  }

  return {
    async beforeStart(settings, cancelled) {
      let current = settings;
      for (const { name, hook } of hooks) {
        try {
          const changes = await within(
            (signal) => hook.beforeStart?.(current, { signal }),
            cancelled,
          );
          current = applyStartChanges(current, changes);
        } catch (error) {
          cancelled.throwIfAborted();
          throw new TextError(
            text`The hook "${name}" failed before the start: ${messageOf(error)}`,
            {
              cause: error,
            },
          );
        }
      }
      return current;
    },

    async afterStop(server) {
      for (const { name, hook } of hooks.toReversed()) {
        try {
          await within((signal) => hook.afterStop?.(server, { signal }));
        } catch (error) {
          const { userName: user, serverName } = server;
          const fields = { err: error, user, server: serverName, hook: name };
          log.warn(fields, 'post-stop hook failed');
        }
      }
    },
  };
}
