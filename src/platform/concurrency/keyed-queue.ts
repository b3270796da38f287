/** Runs what belongs to one key one after another, and different keys side by side. */
export interface KeyedQueue {
  /** Runs the work when its turn comes; undefined when too many wait for the same key. */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result | undefined>;
}

/** The queue of a key lasts only while something waits in it. */
export function createKeyedQueue({
  maxQueueLength,
}: {
  readonly maxQueueLength: number;
}): KeyedQueue {
  const queues = new Map<string, { length: number; last: Promise<unknown> }>();
  return {
    async run(key, work) {
      const queue = queues.get(key) ?? { length: 0, last: Promise.resolve() };
      if (queue.length >= maxQueueLength) return undefined;
      queues.set(key, queue);
      queue.length += 1;
      const turn = queue.last.then(work);
      // The next one runs even if this one fails; its own caller learns of the failure.
      queue.last = turn.catch(() => undefined);
      try {
        return await turn;
      } finally {
        queue.length -= 1;
        if (queue.length === 0) queues.delete(key);
      }
    },
  };
}
