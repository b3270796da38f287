/**
 * Runs work once fewer than the limit are running; the rest waits in the order it came. Rejects with the
 * reason of `signal` when that is aborted before the work has begun; afterwards the signal counts no more.
 */
export type Limiter = <Result>(
  work: () => Promise<Result>,
  signal?: AbortSignal,
) => Promise<Result>;

export function createLimiter(limit: number): Limiter {
  let running = 0;
  const waiting = new Set<() => void>();

  function nextTurn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      function enter(): void {
        signal?.removeEventListener('abort', leave);
        resolve();
      }
      function leave(): void {
        waiting.delete(enter);
        reject(signal?.reason);
      }
      waiting.add(enter);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  return async (work, signal) => {
    // What finishes hands its place over, so `running` stays as it is.
    if (running >= limit) await nextTurn(signal);
    else running += 1;
    try {
      return await work();
    } finally {
      const [next] = waiting;
      if (next === undefined) running -= 1;
      else {
        waiting.delete(next);
        next();
      }
    }
  };
}
