/** The attempts under way, at most so many. */
export interface PendingAttempts {
  /**
   * Takes a place for one of a key. Where there is none, the key with the most attempts gives up its newest, unless this
   * one has as many: its controller is aborted. Undefined when there is no place.
   */
  enter(key: string): AbortController | undefined;
  leave(key: string, attempt: AbortController): void;
}

export function createPendingAttempts(limit: number): PendingAttempts {
  const attempts = new Map<string, Set<AbortController>>();
  let count = 0;

  function leave(key: string, attempt: AbortController): void {
    const ofKey = attempts.get(key);
    // One that was displaced has left already.
    if (ofKey?.delete(attempt) !== true) return;
    count -= 1;
    if (ofKey.size === 0) attempts.delete(key);
  }

  function displaceFor(key: string): boolean {
    const own = attempts.get(key)?.size ?? 0;
    let most = { key, size: own + 1 };
    for (const [each, { size }] of attempts) if (size > most.size) most = { key: each, size };
    const newest = most.key === key ? undefined : [...(attempts.get(most.key) ?? [])].at(-1);
    if (newest === undefined) return false;
    leave(most.key, newest);
    newest.abort();
    return true;
  }

  return {
    enter(key) {
      if (count >= limit && !displaceFor(key)) return undefined;
      const attempt = new AbortController();
      attempts.set(key, (attempts.get(key) ?? new Set()).add(attempt));
      count += 1;
      return attempt;
    },
    leave,
  };
}
