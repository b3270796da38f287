import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long queries may follow one another before whoever waits for the event loop gets a turn. */
const longestTurnMs = 5;

/**
 * Makes queries that answer at once share the event loop. Their promises are settled when they are
 * returned, so a burst of requests would otherwise run from its first query to its last without
 * anybody else, such as a health check, being heard.
 */
export class Turns {
  #begunAt: number | undefined;

  /** Resolves at once, or in the next turn of the event loop when this one has been long. */
  async take(): Promise<void> {
    if (this.#begunAt === undefined) {
      this.#begunAt = performance.now();
      setImmediate(() => {
        this.#begunAt = undefined;
      });
      return;
    }
    if (performance.now() - this.#begunAt > longestTurnMs) await nextTurn();
  }
}
