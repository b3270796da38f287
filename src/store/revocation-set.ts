/** Ids of what ended lately, kept as long as anything remembered from before may still be asked for. */
export interface RevocationSet {
  /** Adds an id; false when there are too many to keep, and everything must count as ended. */
  add(id: string): boolean;
  has(id: string | undefined): boolean;
}

/**
 * An id stays for at least `forMs`, and at most twice as long: two sets take turns,
 * so that nothing is done for each id and no timer runs.
 */
export function createRevocationSet(options: {
  readonly forMs: number;
  readonly max: number;
  readonly now?: () => number;
}): RevocationSet {
  const { forMs, max, now = Date.now } = options;
  let current = new Set<string>();
  let former = new Set<string>();
  let turnedAtMs = now();

  return {
    add(id) {
      if (now() - turnedAtMs >= forMs) {
        former = current;
        current = new Set();
        turnedAtMs = now();
      }
      if (current.size >= max) {
        current = new Set();
        former = new Set();
        return false;
      }
      current.add(id);
      return true;
    },
    has: (id) => id !== undefined && (current.has(id) || former.has(id)),
  };
}
