import { isDeadlock } from './storage-error.ts';

const mostAttempts = 3;

/**
 * Does work again that PostgreSQL undid because it and another transaction waited for each other (`deadlock_detected`,
 * `serialization_failure`). The other one is done by then; nothing of this one is left. Rejects after three attempts.
 */
export async function retryAfterDeadlock<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === mostAttempts || !isDeadlock(error)) throw error;
    }
  }
}
