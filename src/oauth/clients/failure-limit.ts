import { LRUCache } from 'lru-cache';
import { growingUpTo } from '../../concurrency/lru-options.ts';
import { monotonicMs } from '../../concurrency/monotonic-clock.ts';

/** Counts failures and says when there were too many. */
export interface FailureLimit {
  recordFailure(key: string): void;
  /** Seconds until another attempt is allowed; undefined while it is. */
  retryAfterSeconds(key: string): number | undefined;
}

interface FailureWindow {
  count: number;
  readonly endsAt: number;
}

const longestKey = 300;

/**
 * So many failures in a window of time. The key should name the address beside the
 * client, so that guessing from elsewhere does not lock the real client out.
 */
export function createFailureLimit({
  limit = 30,
  windowMs = 60_000,
  maxKeys = 10_000,
  now = monotonicMs,
}: {
  readonly limit?: number;
  readonly windowMs?: number;
  readonly maxKeys?: number;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
} = {}): FailureLimit {
  const windows = new LRUCache<string, FailureWindow>(growingUpTo(maxKeys));

  const currentWindow = (key: string): FailureWindow | undefined => {
    const window = windows.get(key.slice(0, longestKey));
    return window !== undefined && window.endsAt > now() ? window : undefined;
  };

  return {
    recordFailure(key) {
      const window = currentWindow(key);
      if (window !== undefined) window.count += 1;
      else windows.set(key.slice(0, longestKey), { count: 1, endsAt: now() + windowMs });
    },
    retryAfterSeconds(key) {
      const window = currentWindow(key);
      if (window === undefined || window.count < limit) return undefined;
      return Math.ceil((window.endsAt - now()) / 1000);
    },
  };
}
