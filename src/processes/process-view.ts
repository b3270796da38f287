import { type Clock, systemClock } from './clock.ts';
import { findListeners, listListeners, type PortListener } from './port-listener.ts';
import { listProcesses, type ProcessEntry } from './process-table.ts';
import { findTaggedProcesses, listProcessTags } from './process-tag.ts';

/**
 * What the operating system tells of its processes and their ports. Every answer is from a look that
 * began after the question.
 */
export interface ProcessView {
  processes(): Promise<readonly ProcessEntry[]>;
  /** Pids of the processes that carry a tag. */
  taggedWith(tag: string): Promise<readonly number[]>;
  /** Who listens on a TCP port; undefined where the system does not tell. */
  listenersOn(port: number): Promise<readonly PortListener[] | undefined>;
}

/** Looks anew for everybody who asks: right for those who ask now and then. */
export const directView: ProcessView = {
  processes: listProcesses,
  taggedWith: findTaggedProcesses,
  listenersOn: findListeners,
};

/** A shared look rests this many times as long as it took, so that looking never fills a core. */
const restFactor = 3;

/**
 * A view that reads once for all who ask at the same time, and not again at once. With hundreds
 * of servers that start or end together each look would cost the same, and there would be hundreds.
 */
export function createSharedView(): ProcessView {
  const processes = createSharedLook(listProcesses);
  const tags = createSharedLook(listProcessTags);
  const listeners = createSharedLook(listListeners);
  return {
    processes,
    taggedWith: async (tag) => (await tags()).get(tag) ?? [],
    async listenersOn(port) {
      const known = await listeners();
      return known && (known.get(port) ?? []);
    },
  };
}

/**
 * A shared read: one under way and one to come, for all who asked in between. The
 * next one begins when the last one is over and a rest has passed that is as long as the look was costly.
 */
export function createSharedLook<Seen>(
  look: () => Promise<Seen>,
  clock: Clock = systemClock,
): () => Promise<Seen> {
  let last: Promise<unknown> = Promise.resolve();
  let restsUntil = Number.NEGATIVE_INFINITY;
  let next: Promise<Seen> | undefined;

  async function lookNow(): Promise<Seen> {
    const begunAt = clock.now();
    try {
      return await look();
    } finally {
      const now = clock.now();
      restsUntil = now + (now - begunAt) * restFactor;
    }
  }

  async function lookInTurn(): Promise<Seen> {
    await last;
    const restMs = restsUntil - clock.now();
    if (restMs > 0) await clock.sleep(restMs);
    next = undefined;
    const seen = lookNow();
    last = seen.catch(() => undefined);
    return seen;
  }

  return () => {
    next ??= lookInTurn();
    return next;
  };
}
