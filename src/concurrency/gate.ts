/** Lets a number of works run at once; the others wait their turn. */
export type Gate = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Creates a gate that `limit` works pass at once. */
export function createGate(limit: number): Gate {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    // Whoever finishes hands its place over, so `running` stays as it is.
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
