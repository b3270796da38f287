import { monotonicMs as systemMonotonicMs } from '../concurrency/monotonic-clock.ts';

/** Ids of what ended or changed lately, kept as long as anything remembered from before may still be asked for. */
export interface RevocationSet {
  /** Adds an id; false when there are too many to keep, and everything must count as ended. */
  add(id: string): boolean;
  has(id: string | undefined): boolean;
  /** When it was added last, by `monotonicMs`. */
  addedAtMs(id: string): number | undefined;
}

/**
 * An id stays for at least `forMs`, and at most twice as long: two sets take turns,
 * so that nothing is done for each id and no timer runs.
 */
export function createRevocationSet(options: {
  readonly forMs: number;
  readonly max: number;
  readonly monotonicMs?: () => number;
}): RevocationSet {
  const { forMs, max, monotonicMs = systemMonotonicMs } = options;
  let current = new Map<string, number>();
  let former = new Map<string, number>();
  let turnedAtMs = monotonicMs();

  return {
    add(id) {
      if (monotonicMs() - turnedAtMs >= forMs) {
        former = current;
        current = new Map();
        turnedAtMs = monotonicMs();
      }
      if (current.size >= max) {
        current = new Map();
        former = new Map();
        return false;
      }
      current.set(id, monotonicMs());
      return true;
    },
    has: (id) => id !== undefined && (current.has(id) || former.has(id)),
    addedAtMs: (id) => current.get(id) ?? former.get(id),
  };
}
