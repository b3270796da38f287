/** Runs work once fewer than the limit are running; the rest waits in the order it came. */
export type Limiter = <Result>(work: () => Promise<Result>) => Promise<Result>;

export function createLimiter(limit: number): Limiter {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    // What finishes hands its place over, so `running` stays as it is.
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
