/**
 * Runs work once fewer than the limit are running; the rest waits. Keys take turns, and what has the same key is run
 * in the order it came. Rejects with the reason of `signal` when that is aborted before the work has begun; afterwards
 * the signal counts no more.
 */
export type Limiter = <Result>(
  work: () => Promise<Result>,
  signal?: AbortSignal,
  key?: string,
) => Promise<Result>;

/** `limitPerKey` is how many of one key may run at once, so that there is room for others. */
export function createLimiter(limit: number, { limitPerKey = limit } = {}): Limiter {
  let running = 0;
  const runningOf = new Map<string, number>();
  /** Those that wait; the key whose turn it is comes first. */
  const lines = new Map<string, Set<() => void>>();

  const mayRun = (key: string) => running < limit && (runningOf.get(key) ?? 0) < limitPerKey;

  function count(key: string, change: 1 | -1): void {
    running += change;
    const ofKey = (runningOf.get(key) ?? 0) + change;
    if (ofKey === 0) runningOf.delete(key);
    else runningOf.set(key, ofKey);
  }

  function leaveLine(key: string, enter: () => void): void {
    const line = lines.get(key);
    line?.delete(enter);
    if (line?.size === 0) lines.delete(key);
  }

  function nextTurn(key: string, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      function enter(): void {
        signal?.removeEventListener('abort', giveUp);
        count(key, 1);
        resolve();
      }
      function giveUp(): void {
        leaveLine(key, enter);
        reject(signal?.reason);
      }
      lines.set(key, (lines.get(key) ?? new Set()).add(enter));
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  /** A key that had its turn goes behind the others, and is seen once more by this loop. */
  function fillPlaces(): void {
    for (const [key, line] of lines) {
      const [enter] = line;
      if (enter === undefined || !mayRun(key)) continue;
      leaveLine(key, enter);
      if (lines.delete(key)) lines.set(key, line);
      enter();
    }
  }

  return async (work, signal, key = '') => {
    if (mayRun(key)) count(key, 1);
    else await nextTurn(key, signal);
    try {
      return await work();
    } finally {
      count(key, -1);
      fillPlaces();
    }
  };
}
