/** The longest delay of a timer; a longer one would fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * A signal that aborts with a TimeoutError after some time, which need not be a whole number of milliseconds
 * nor one that a timer can count.
 */
export function timeLimit(limitMs: number): AbortSignal {
  return AbortSignal.timeout(Math.min(Math.ceil(limitMs), longestTimerMs));
}
