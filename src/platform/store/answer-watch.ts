import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';

/** How long a statement waits for its answer once the hub is about to stop. */
const lastPatienceMs = 3_000;
const checkIntervalMs = 100;

/** Waits for the answers of a database, but when the hub stops, not for one that gives none. */
export interface AnswerWatch {
  /**
   * Settles as the answer does, or rejects with `storage_unavailable` as soon as the database is given
   * up.
   */
  wait<T>(answer: Promise<T>): Promise<T>;
  /** Why the database is given up, if it is. */
  readonly givenUp: HubError | undefined;
}

/**
 * Gives the database up when a statement got no answer for three seconds after `stopping` was
 * aborted: with each of the many steps of a stop waiting until its own timeout, it would take minutes.
 */
export function createAnswerWatch(stopping: AbortSignal | undefined): AnswerWatch {
  if (stopping === undefined) return patientWatch;
  const waiting = new Set<{ readonly sinceMs: number; reject(reason: HubError): void }>();
  let givenUp: HubError | undefined;

  function watch(): void {
    const stoppingSinceMs = performance.now();
    const timer = setInterval(() => {
      const [oldest] = waiting;
      if (oldest === undefined) return;
      const waitedMs = performance.now() - Math.max(oldest.sinceMs, stoppingSinceMs);
      if (waitedMs < lastPatienceMs) return;
      clearInterval(timer);
      givenUp = new HubError('storage_unavailable', text`The database gives no answer.`, {
        cause: new Error('given up, as the hub is stopping'),
        retryAfterSeconds: 5,
      });
      for (const { reject } of waiting) reject(givenUp);
      waiting.clear();
    }, checkIntervalMs);
    timer.unref();
  }

  if (stopping.aborted) watch();
  else stopping.addEventListener('abort', watch, { once: true });

  return {
    async wait(answer) {
      const { promise, reject } = Promise.withResolvers<never>();
      const entry = { sinceMs: performance.now(), reject };
      waiting.add(entry);
      if (givenUp !== undefined) reject(givenUp);
      try {
        return await Promise.race([answer, promise]);
      } finally {
        waiting.delete(entry);
      }
    },
    get givenUp() {
      return givenUp;
    },
  };
}

const patientWatch: AnswerWatch = { wait: (answer) => answer, givenUp: undefined };
