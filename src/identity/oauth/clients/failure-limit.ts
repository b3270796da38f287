import { LRUCache } from 'lru-cache';
import { growingUpTo } from '../../../platform/concurrency/answer-cache.ts';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import type { KeyvSpace } from '../../../platform/store/keyv-space.ts';

/** Counts failures, of all processes together, and makes no attempt after too many. */
export interface FailureLimit {
  /**
   * Makes an attempt, which fails where it resolves to undefined. Of several at once no more are under way than may
   * still fail; the others wait for them. Rejects with what `refusal` makes where there were too many failures.
   */
  attempt<Result>(
    key: string,
    work: () => Promise<Result | undefined>,
    refusal: (retryAfterSeconds: number) => Error,
  ): Promise<Result | undefined>;
}

/** Makes an attempt that counts however it ends. Rejects as the attempt does, and as `FailureLimit.attempt`. */
export async function countedAttempt<Result>(
  limit: FailureLimit,
  key: string,
  work: () => Promise<Result>,
  refusal: (retryAfterSeconds: number) => Error,
): Promise<Result> {
  let made: Promise<Result> | undefined;
  const count = async () => {
    made = work();
    await made.catch(() => undefined);
    return undefined;
  };
  await limit.attempt(key, count, refusal);
  if (made === undefined) throw new Error('no attempt was made');
  return await made;
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
 * first of its own: each may have its attempts under way once, and those that succeed cost no query.
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
  const underWay = new Map<string, Set<Promise<unknown>>>();

  /** One that ends later than any can was begun before the clock was set back; those of other processes differ a little. */
  const isCurrent = ({ endsAtMs }: FailureWindow) =>
    endsAtMs > now() && endsAtMs <= now() + windowMs + clockErrorMs;

  const currentOf = (hash: string): FailureWindow | undefined => {
    const window = windows.get(hash);
    return window && isCurrent(window) ? window : undefined;
  };

  async function recordFailure(hash: string): Promise<void> {
    const window = await counts.update(hash, (former) => {
      const value =
        former !== undefined && isCurrent(former)
          ? { ...former, count: former.count + 1 }
          : { count: 1, endsAtMs: now() + windowMs };
      return { value, lifetimeMs: value.endsAtMs - now() };
    });
    if (window !== undefined) windows.set(hash, window);
  }

  return {
    async attempt(key, work, refusal) {
      const hash = hashSecret(key);
      for (;;) {
        const { count = 0, endsAtMs = 0 } = currentOf(hash) ?? {};
        if (count >= limit) throw refusal(Math.ceil((endsAtMs - now()) / 1000));
        const others = underWay.get(hash);
        if (others === undefined || count + others.size < limit) break;
        await Promise.race(others);
      }
      const attempts = underWay.get(hash) ?? new Set();
      underWay.set(hash, attempts);
      const attempt = (async () => {
        const result = await work();
        if (result === undefined) await recordFailure(hash);
        return result;
      })();
      const settled = attempt
        .catch(() => undefined)
        .finally(() => {
          attempts.delete(settled);
          if (attempts.size === 0) underWay.delete(hash);
        });
      attempts.add(settled);
      return await attempt;
    },
  };
}
