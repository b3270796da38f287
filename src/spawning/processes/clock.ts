import { setTimeout as delay } from 'node:timers/promises';

/** Time as a part sees it, so that tests of waiting do not wait. */
export interface Clock {
  /** The time of day in milliseconds since 1970: for what is stored and shown. */
  now(): number;
  /** As `performance.now()`, which goes on whatever is done to the time of day: for durations. */
  monotonicMs(): number;
  /** Waits; ends early, without an error, when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
    } catch {
      // Only an abort rejects, and that is the early end the caller asked for.
    }
  },
};
