/** The longest delay of a timer; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * A signal that aborts with a TimeoutError after some time, which need not be a whole number of milliseconds
 * nor one that a timer can count; or as `signal` does, if that is earlier.
 */
export function timeLimit(limitMs: number, signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(Math.min(Math.ceil(limitMs), maxTimerMs));
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}
