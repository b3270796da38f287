import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work may follow work before whoever waits for the event loop gets a turn. */
const longestTurnMs = 5;

/**
 * Makes work that comes in bursts share the event loop: queries whose promises are settled when they are
 * returned, or requests that arrive together. A burst would otherwise run from its first piece to its last
 * without anybody else, such as a health check, being heard.
 */
export class Turns {
  #begunAt: number | undefined;

  /** Resolves at once, or in a later turn of the event loop when this one has been long. */
  async take(): Promise<void> {
    while (this.#begunAt !== undefined && performance.now() - this.#begunAt > longestTurnMs) {
      await nextTurn();
    }
    if (this.#begunAt !== undefined) return;
    this.#begunAt = performance.now();
    setImmediate(() => {
      this.#begunAt = undefined;
    });
  }
}
