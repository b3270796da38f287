/**
 * Milliseconds on a clock that goes on whatever is done to the time of day, from when the process began:
 * for every duration. The time of day is for what is stored and shown.
 */
export function monotonicMs(): number {
  return performance.now();
}

/** When a moment of the monotonic clock was, by the time of day as it is now. */
export function dateOf(atMs: number): Date {
  return new Date(Date.now() - (monotonicMs() - atMs));
}
