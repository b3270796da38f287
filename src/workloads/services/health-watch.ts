import { type Phrase, text } from '../../platform/texts/text.ts';
import type { Clock } from '../../spawning/processes/clock.ts';
import { type probeReadiness, waitUntilReady } from '../../spawning/processes/readiness-probe.ts';
import type { Service } from './service.ts';

export interface HealthWatchOptions {
  readonly service: Service & { readonly url: string };
  /** Ends the watch. */
  readonly signal: AbortSignal;
  readonly probe: typeof probeReadiness;
  readonly clock: Clock;
  readonly onReady: () => void;
  /** Called with the time of each good answer, before `onReady`. */
  readonly onAnswer?: (answeredInMs: number) => void;
  /** Called when it turns unhealthy, and again whenever the reason changes. */
  readonly onUnhealthy: (reason: Phrase) => void;
}

const calmPauseMs = 10_000;
/** While something is wrong, so that a service that comes back is seen within a second. */
const alarmedPauseMs = 1_000;
const maxProbeMs = 10_000;
/** One slow answer is not a failure yet; a port on which nothing listens is. */
const missesUntilUnhealthy = 3;

/**
 * Watches a web service until the signal ends it: first waits for it to become ready, then asks it
 * now and again. A service that is not ready is not ended: it may be busy with something precious.
 */
export async function watchHealth(options: HealthWatchOptions): Promise<void> {
  const { service, signal, probe, clock, onReady, onAnswer, onUnhealthy } = options;
  const { url, healthPath: path, readyTimeoutMs } = service;
  const timeoutMs = Math.min(readyTimeoutMs, maxProbeMs);
  const isStarting = service.kind === 'managed';
  const first = isStarting
    ? await waitUntilReady({ url, path, timeoutMs: readyTimeoutMs, signal, clock, probe })
    : await probe({ url, path, timeoutMs, signal });
  if (signal.aborted) return;
  let isReady = first.ready;
  if (first.ready) {
    onAnswer?.(first.answeredInMs);
    onReady();
  } else
    onUnhealthy(
      isStarting ? text`not ready after ${readyTimeoutMs / 1000} s: ${first.reason}` : first.reason,
    );

  for (let misses = isReady ? 0 : missesUntilUnhealthy; ; ) {
    await clock.sleep(misses === 0 ? calmPauseMs : alarmedPauseMs, signal);
    if (signal.aborted) return;
    const result = await probe({ url, path, timeoutMs, signal });
    if (signal.aborted) return;
    if (result.ready) {
      misses = 0;
      onAnswer?.(result.answeredInMs);
      if (!isReady) onReady();
      isReady = true;
      continue;
    }
    misses += 1;
    const isCertain = result.problem === 'refused' || result.problem === 'foreign';
    if (misses < missesUntilUnhealthy && !isCertain) continue;
    isReady = false;
    onUnhealthy(result.reason);
  }
}
