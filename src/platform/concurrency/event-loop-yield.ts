import { setImmediate as nextTurn } from 'node:timers/promises';

/** How long work may follow work before others get a turn of the event loop. */
const maxTurnMs = 5;

/**
 * Makes work that comes in bursts share the event loop: queries whose promises are settled when they are
 * returned, or requests that arrive together. A burst would otherwise run from its first piece to its last
 * while everything else, such as a health check, waits.
 *
 * The returned function is to be awaited before each piece of work: it resolves at once, or in a later turn
 * of the event loop when this one has lasted 5 ms.
 */
export function createEventLoopYield(): () => Promise<void> {
  let begunAtMs: number | undefined;

  return async () => {
    while (begunAtMs !== undefined && performance.now() - begunAtMs > maxTurnMs) {
      await nextTurn();
    }
    if (begunAtMs !== undefined) return;
    begunAtMs = performance.now();
    setImmediate(() => {
      begunAtMs = undefined;
    });
  };
}
