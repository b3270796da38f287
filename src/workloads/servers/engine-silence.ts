import type { Logger } from 'pino';
import type { PollResult } from '../../plugin/host/spawner.ts';

/** Says once that the engine of a server does not answer, and once that it does again: it may be down for hours. */
export function createEngineSilence(log: Pick<Logger, 'info' | 'warn'>) {
  let isKnown = false;
  /** Whether the engine does not say how the server is, which counts as running. */
  return (result: PollResult): result is Extract<PollResult, { readonly running: 'unknown' }> => {
    if (result.running === 'unknown') {
      if (!isKnown) log.warn({ reason: result.reason }, message);
      isKnown = true;
      return true;
    }
    if (isKnown) log.info('engine of server reachable again');
    isKnown = false;
    return false;
  };
}

const message = 'the engine of a server does not say whether it runs; it counts as running';
