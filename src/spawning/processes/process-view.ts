import { listProcesses, type ProcessEntry } from '../../platform/process-table/process-table.ts';
import { type Clock, systemClock } from './clock.ts';
import { findListeners, listListeners, type PortListener } from './port-listener.ts';
import { findTaggedProcesses, listProcessTags, splitTag } from './process-tag.ts';

/**
 * What the operating system tells of its processes and their ports. Every answer is from a scan that
 * began after the question.
 */
export interface ProcessView {
  processes(): Promise<readonly ProcessEntry[]>;
  /** Pids of the processes that carry a tag. */
  taggedWith(tag: string): Promise<readonly number[]>;
  /** The tags of a family that processes carry. */
  tagsOf(family: string): Promise<readonly string[]>;
  /** Who listens on a TCP port; undefined where the system does not tell. */
  listenersOn(port: number): Promise<readonly PortListener[] | undefined>;
}

/** Scans for each caller: right for those who ask now and then. */
export const directView: ProcessView = {
  processes: listProcesses,
  taggedWith: findTaggedProcesses,
  tagsOf: async (family) => ofFamily(await listProcessTags(), family),
  listenersOn: findListeners,
};

/** A shared scan rests this many times as long as it took, so that scanning never fills a core. */
const usualRestFactor = 3;

/**
 * A view that scans once for all who ask at the same time, and not again at once. With hundreds of
 * servers that start or end together each scan would cost the same, and there would be hundreds.
 */
export function createSharedView({
  restFactor = usualRestFactor,
  listTags = listProcessTags,
}: {
  readonly restFactor?: number;
  readonly listTags?: typeof listProcessTags;
} = {}): ProcessView {
  const processes = createSharedScan(listProcesses, systemClock, restFactor);
  const tags = createSharedScan(listTags, systemClock, restFactor);
  const listeners = createSharedScan(listListeners, systemClock, restFactor);
  return {
    processes,
    taggedWith: async (tag) => (await tags()).get(tag) ?? [],
    tagsOf: async (family) => ofFamily(await tags(), family),
    async listenersOn(port) {
      const known = await listeners();
      return known && (known.get(port) ?? []);
    },
  };
}

/**
 * Shares a scan: one under way and one to come, for everyone who asked in between. The next one begins
 * when the last one is over and a rest has passed that is as long as the scan was costly.
 */
export function createSharedScan<Seen>(
  scan: () => Promise<Seen>,
  clock: Clock = systemClock,
  restFactor = usualRestFactor,
): () => Promise<Seen> {
  let last: Promise<unknown> = Promise.resolve();
  let restsUntil = Number.NEGATIVE_INFINITY;
  let next: Promise<Seen> | undefined;

  async function scanNow(): Promise<Seen> {
    const begunAt = clock.monotonicMs();
    try {
      return await scan();
    } finally {
      const now = clock.monotonicMs();
      restsUntil = now + (now - begunAt) * restFactor;
    }
  }

  async function scanInTurn(): Promise<Seen> {
    await last;
    const restMs = restsUntil - clock.monotonicMs();
    if (restMs > 0) await clock.sleep(restMs);
    next = undefined;
    const seen = scanNow();
    last = seen.catch(() => undefined);
    return seen;
  }

  return () => {
    next ??= scanInTurn();
    return next;
  };
}

function ofFamily(tags: ReadonlyMap<string, unknown>, family: string): readonly string[] {
  return [...tags.keys()].filter((tag) => splitTag(tag)?.family === family);
}
