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

/** Whether work is done within a time; rejects as the work does by then. It goes on in any case. */
export async function isWithin(work: Promise<void>, limitMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), limitMs);
  // Who waits no more hears of no failure.
  work.catch(() => undefined);
  try {
    return await Promise.race([work.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
