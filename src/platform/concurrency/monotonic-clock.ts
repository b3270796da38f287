/**
 * When a moment of `performance.now()` was, by the time of day as it is now. That clock goes on whatever is done to the
 * time of day, and is for every duration; the time of day is for what is stored and shown.
 */
export function dateOf(atMs: number): Date {
  return new Date(Date.now() - (performance.now() - atMs));
}
