import { createLimiter } from './limiter.ts';

/** Lets a bounded number of tasks run at once, and a bounded number wait. */
export interface Semaphore {
  /** Runs the work when there is room; undefined when too many wait already. */
  run<Result>(work: () => Promise<Result>): Promise<Result | undefined>;
}

/** Waiting tasks run in the order in which they came. */
export function createSemaphore(limits: {
  readonly running: number;
  readonly waiting: number;
}): Semaphore {
  const limiter = createLimiter(limits.running);
  let accepted = 0;

  return {
    async run(work) {
      if (accepted >= limits.running + limits.waiting) return undefined;
      accepted += 1;
      try {
        return await limiter(work);
      } finally {
        accepted -= 1;
      }
    },
  };
}
