import type { Phrase } from '../platform/texts/text.ts';
import { systemClock } from '../spawning/processes/clock.ts';
import { pauseMsAfter, probeReadiness } from '../spawning/processes/readiness-probe.ts';

const timeoutMs = 5_000;

/**
 * Polls a path of the app until it answers, with any status. Resolves with the sentence of `findForeignProcess` when
 * another program has its address; rejects when the signal is aborted.
 */
export async function waitForApp({
  url,
  path,
  findForeignProcess,
  signal,
}: {
  readonly url: string;
  readonly path: string;
  readonly findForeignProcess: (seen: { isAnswered: boolean }) => Promise<Phrase | undefined>;
  readonly signal: AbortSignal;
}): Promise<{ readonly foreignProcess: Phrase | undefined }> {
  const sinceMs = systemClock.monotonicMs();
  for (let sightings = 0; ; ) {
    const result = await probeReadiness({ url, path, timeoutMs, signal });
    signal.throwIfAborted();
    const isAnswered = result.ready || result.problem === 'status';
    const isRefused = !result.ready && result.problem === 'refused';
    const foreignProcess = isRefused ? undefined : await findForeignProcess({ isAnswered });
    if (isAnswered && foreignProcess === undefined) return { foreignProcess };
    sightings = foreignProcess === undefined ? 0 : sightings + 1;
    // The second look finds a program that began in the middle of the first.
    if (sightings > 1) return { foreignProcess };
    await systemClock.sleep(pauseMsAfter(systemClock.monotonicMs() - sinceMs), signal);
  }
}
