/** Lets a bounded number of tasks run at once, and a bounded number wait. */
export interface Semaphore {
  /** Runs the work when there is room; undefined when too many wait already. */
  run<Result>(work: () => Promise<Result>): Promise<Result | undefined>;
}

/** Creates a semaphore; waiting tasks run in the order in which they came. */
export function createSemaphore(limits: {
  readonly running: number;
  readonly waiting: number;
}): Semaphore {
  let running = 0;
  const waiting: (() => void)[] = [];

  return {
    async run(work) {
      if (running >= limits.running) {
        if (waiting.length >= limits.waiting) return undefined;
        // Whoever finishes hands its place over, so `running` stays as it is.
        await new Promise<void>((resolve) => waiting.push(resolve));
      } else {
        running += 1;
      }
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}
