import { Secret } from '../../platform/config/secret.ts';
import { createKeyedHash } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';

/**
 * Challenges for callers, each good for one call. They are timed by the monotonic clock of who gives them
 * out, so that clocks of machines may differ, and hold their own proof, so that asking for many fills
 * nothing.
 */
export interface Challenges {
  issue(): string;
  /** Whether it was given out here, not long ago. */
  isFresh(challenge: string): boolean;
  /** Takes a fresh challenge; false when it has been used. Only for calls that are proven genuine. */
  use(challenge: string): boolean;
}

export const challengeLifetimeMs = 30_000;
const maxCached = 10_000;

export function createChallenges(now: () => number = () => performance.now()): Challenges {
  const hash = createKeyedHash([new Secret(randomSecret())], 'challenge');
  /** Used ones in the order of their use, with the moment from which they are stale anyway. */
  const used = new Map<string, number>();

  function forgetStale(): void {
    for (const [challenge, staleAtMs] of used) {
      if (staleAtMs > now()) return;
      used.delete(challenge);
    }
  }

  return {
    issue() {
      const text = `${Math.floor(now())}.${randomSecret(16)}`;
      return `${text}.${hash.sign(text)}`;
    },
    isFresh(challenge) {
      const [issuedAt = '', random = '', signature = '', ...rest] = challenge.split('.');
      if (rest.length > 0 || !hash.verify(`${issuedAt}.${random}`, signature)) return false;
      return now() - Number(issuedAt) < challengeLifetimeMs;
    },
    use(challenge) {
      forgetStale();
      if (used.has(challenge) || used.size >= maxCached) return false;
      used.set(challenge, now() + challengeLifetimeMs);
      return true;
    },
  };
}
