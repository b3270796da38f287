/** Names of what ended lately, kept as long as anything remembered from before may still be asked for. */
export interface RecentMarks {
  /** Marks a name; false when there are too many to keep, and everything must count as marked. */
  add(name: string): boolean;
  has(name: string | undefined): boolean;
}

/**
 * Creates an empty collection. A mark lasts for at least `forMs`, and at most twice as long: two sets
 * take turns, so that nothing is done for each mark and no timer runs.
 */
export function createRecentMarks(options: {
  readonly forMs: number;
  readonly most: number;
  /** A clock that never goes back. */
  readonly now?: () => number;
}): RecentMarks {
  const { forMs, most, now = () => performance.now() } = options;
  let current = new Set<string>();
  let former = new Set<string>();
  let turnedAt = now();

  return {
    add(name) {
      if (now() - turnedAt >= forMs) {
        former = current;
        current = new Set();
        turnedAt = now();
      }
      if (current.size >= most) {
        current = new Set();
        former = new Set();
        return false;
      }
      current.add(name);
      return true;
    },
    has: (name) => name !== undefined && (current.has(name) || former.has(name)),
  };
}
