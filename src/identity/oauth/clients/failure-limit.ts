import { LRUCache } from 'lru-cache';
import { growingUpTo } from '../../../platform/concurrency/lru-options.ts';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import type { KeyvSpace } from '../../../platform/store/keyv-space.ts';

/** Counts failures, of all processes together, and says when there were too many. */
export interface FailureLimit {
  recordFailure(key: string): Promise<void>;
  /** Seconds until another attempt is allowed; undefined while it is. Asks no store. */
  retryAfterSeconds(key: string): number | undefined;
}

/** Failures since the first of a window. */
export interface FailureWindow {
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly endsAtMs: number;
}

const clockErrorMs = 1_000;

/**
 * So many failures in a window of time, which begins with the first. The key should name the address beside the client,
 * so that guessing from elsewhere does not lock the real client out. A process learns of the failures at others with the
 * first one of its own: that is one more attempt for each process, and those that succeed cost no query.
 */
export function createFailureLimit({
  counts,
  now,
  limit = 30,
  windowMs = 60_000,
  maxKeys = 10_000,
}: {
  readonly counts: Pick<KeyvSpace<FailureWindow>, 'update'>;
  /** Milliseconds since 1970, by a clock that all processes share. */
  readonly now: () => number;
  readonly limit?: number;
  readonly windowMs?: number;
  readonly maxKeys?: number;
}): FailureLimit {
  const windows = new LRUCache<string, FailureWindow>(growingUpTo(maxKeys));

  /** One that ends later than any can was begun before the clock was set back; those of other processes differ a little. */
  const isCurrent = ({ endsAtMs }: FailureWindow) =>
    endsAtMs > now() && endsAtMs <= now() + windowMs + clockErrorMs;

  return {
    async recordFailure(key) {
      const hash = hashSecret(key);
      const window = await counts.update(hash, (former) => {
        const value =
          former !== undefined && isCurrent(former)
            ? { ...former, count: former.count + 1 }
            : { count: 1, endsAtMs: now() + windowMs };
        return { value, lifetimeMs: value.endsAtMs - now() };
      });
      if (window !== undefined) windows.set(hash, window);
    },
    retryAfterSeconds(key) {
      const window = windows.get(hashSecret(key));
      if (window === undefined || window.count < limit || !isCurrent(window)) return undefined;
      return Math.ceil((window.endsAtMs - now()) / 1000);
    },
  };
}
