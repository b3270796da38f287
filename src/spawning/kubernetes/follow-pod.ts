import type { Limiter } from '../../platform/concurrency/limiter.ts';
import type { PluginLog } from '../../platform/logging/plugin-log.ts';
import type { ServerExit } from '../../plugin/host/spawner.ts';
import { systemClock } from '../processes/clock.ts';
import { ApiRefusal, messageOf } from './api-errors.ts';
import type { Cluster } from './cluster.ts';
import { followOutput, readLastOutput } from './pod-output.ts';
import { exitOf, hasEnded, type PodView } from './pod-view.ts';
import type { PodCondition, PodKey, Pods } from './pods.ts';

export interface FollowedPod {
  readonly key: PodKey;
  /** Whether it has just been started: its output is followed from the beginning. */
  readonly isNew: boolean;
  readonly onOutput: (line: string, stream: 'stdout' | 'stderr') => void;
  /** How a pod ended for the hub that has another address by now. */
  readonly movedExit: (view: PodView) => ServerExit | undefined;
  /** Told when nothing is to be sent to its address any more: before the last output is there. */
  readonly onEnd: () => void;
  readonly signal: AbortSignal;
}

export interface FollowTools {
  readonly cluster: Cluster;
  readonly pods: Pods;
  /** For connections that begin to follow output: each takes a handshake. */
  readonly inTurn: Limiter;
  readonly log: PluginLog;
}

/** How long output is followed line by line: a connection for each server would take memory for ever. */
const followMs = 60_000;
/** How long the last lines of a server that has ended may be in coming. */
const lastLinesMs = 2_000;

/**
 * Tells how a server ended; never resolves when the signal aborts first, and never rejects. Its output is passed
 * on as it comes while the server starts, and the last lines of it when it has ended.
 */
export async function followPod(followed: FollowedPod, tools: FollowTools): Promise<ServerExit> {
  const { key, signal, movedExit, onEnd } = followed;
  const output = startReading(followed, tools);
  for (;;) {
    const changed = tools.pods.next(key.uid, { signal });
    const condition = await tools.pods.find(key);
    if (signal.aborted) return new Promise<never>(() => undefined);
    const exit = exitNow(condition, movedExit);
    if (exit !== undefined) {
      onEnd();
      await output.finish(condition.is === 'there');
      return exit;
    }
    await changed;
    if (signal.aborted) return new Promise<never>(() => undefined);
  }
}

function exitNow(
  condition: PodCondition,
  movedExit: FollowedPod['movedExit'],
): ServerExit | undefined {
  if (condition.is === 'gone') return condition.exit;
  if (condition.is !== 'there') return undefined;
  return hasEnded(condition.view) ? exitOf(condition.view) : movedExit(condition.view);
}

/** Follows the output for a while; `finish` waits for the rest of it, or asks for the last lines. */
function startReading(
  { key, isNew, onOutput, signal }: FollowedPod,
  { cluster, inTurn, log }: FollowTools,
): { finish(isThere: boolean): Promise<void> } {
  let readUntilMs: number | undefined = isNew ? undefined : systemClock.monotonicMs();
  const enough = new AbortController();
  const timer = isNew ? setTimeout(stopReading, followMs).unref() : undefined;
  function stopReading(): void {
    readUntilMs ??= systemClock.monotonicMs();
    enough.abort();
  }
  const warn = (thrown: unknown): void => {
    stopReading();
    // One that was deleted meanwhile has no output any more.
    if (signal.aborted || (thrown instanceof ApiRefusal && thrown.statusCode === 404)) return;
    log.warn({ pod: key.pod, reason: messageOf(thrown) }, 'pod output cannot be read');
  };
  const limit = AbortSignal.any([signal, enough.signal]);
  const reading = isNew
    ? followOutput(cluster, key, { signal: limit, onOutput, inTurn }).catch((thrown: unknown) => {
        if (!limit.aborted) warn(thrown);
      })
    : Promise.resolve();

  return {
    async finish(isThere) {
      clearTimeout(timer);
      const patience = new AbortController();
      await Promise.race([reading, systemClock.sleep(lastLinesMs, patience.signal)]);
      patience.abort();
      enough.abort();
      if (readUntilMs === undefined || !isThere) return;
      const sinceSeconds = (systemClock.monotonicMs() - readUntilMs) / 1000;
      await readLastOutput(cluster, key, { sinceSeconds, onOutput }).catch(warn);
    },
  };
}
