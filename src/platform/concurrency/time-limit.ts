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

/**
 * What comes of work within a time, or else what `late` returns or throws then. The work goes on in any case, but who
 * waits no more hears of no failure.
 */
export async function withinTime<Value, Late>(
  work: Promise<Value>,
  limitMs: number,
  late: () => Late | Promise<Late>,
): Promise<Value | Late> {
  const { promise: isOver, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, limitMs);
  try {
    return await Promise.race([work, isOver.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether work is done within a time; rejects as the work does by then. */
export function isWithin(work: Promise<void>, limitMs: number): Promise<boolean> {
  const done = work.then(() => true);
  return withinTime(done, limitMs, () => false);
}
