import { createAnswerCache } from '../platform/concurrency/answer-cache.ts';
import { hashSecret } from '../platform/crypto/hash.ts';
import type { UserModel } from './hub-api.ts';

const maxUsers = 10_000;
const maxRefusals = 2_000;

/** Remembers what the hub said about a token, and asks once for requests that arrive together. */
export interface UserCache {
  /** The session id is part of the key: it goes at logout, and what was remembered with it. */
  lookUp(request: {
    readonly token: string;
    readonly sessionId?: string | undefined;
    readonly signal?: AbortSignal | undefined;
  }): Promise<UserModel | undefined>;
}

/**
 * Answers are remembered for `maxAgeMs`, also that a token
 * identifies no one; errors never. Zero asks the hub every time.
 */
export function createUserCache(
  userForToken: (token: string) => Promise<UserModel | undefined>,
  maxAgeMs: () => number,
): UserCache {
  const users = createAnswerCache<UserModel>({
    max: maxUsers,
    maxMisses: maxRefusals,
    ttlMs: maxAgeMs,
  });
  return {
    lookUp({ token, sessionId, signal }) {
      // A length in front, because no separator is safe beside a session id that a client may invent.
      const key = hashSecret(`${token.length}:${token}${sessionId ?? ''}`);
      const lookup = users.getOrLoad(key, () => userForToken(token));
      return signal === undefined ? lookup : abandonOnAbort(lookup, signal);
    },
  };
}

/** One caller may stop waiting; the lookup goes on for the others. */
function abandonOnAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abandon = () => reject(signal.reason);
  signal.addEventListener('abort', abandon, { once: true });
  return Promise.race([promise, aborted]).finally(() =>
    signal.removeEventListener('abort', abandon),
  );
}
