import { setTimeout as sleep } from 'node:timers/promises';
import { isDeadlock } from './storage-error.ts';

const maxAttempts = 3;
/** The other transaction goes first: at once, this one could take from it what both want again. */
const pauseMs = { min: 10, spread: 30 };

/**
 * Does work again that PostgreSQL undid because it and another transaction waited for each other (`deadlock_detected`,
 * `serialization_failure`). Nothing of it is left, and the other one goes on. Rejects after three attempts.
 */
export async function retryAfterDeadlock<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === maxAttempts || !isDeadlock(error)) throw error;
      await sleep(pauseMs.min + Math.random() * pauseMs.spread);
    }
  }
}
