import { LRUCache } from 'lru-cache';
import { hashSecret } from '../crypto/hash.ts';
import type { UserModel } from './hub-api.ts';

const maxUsers = 10_000;
/** Apart from the users, so that a flood of invented tokens cannot push those out. */
const maxRefusals = 2_000;

/** Remembers what the hub said about a token, and asks once for requests that arrive together. */
export interface UserCache {
  /**
   * The owner of a token, remembered for `maxAgeMs`; zero asks the hub unless it is being asked. The
   * session id is part of the key: it goes at logout, and what was remembered with it.
   */
  lookUp(request: {
    readonly token: string;
    readonly sessionId: string | undefined;
    readonly maxAgeMs: number;
    readonly signal?: AbortSignal | undefined;
  }): Promise<UserModel | null>;
}

/** Creates the cache in front of a lookup. Answers are remembered, also null; errors never. */
export function createUserCache(
  userForToken: (token: string) => Promise<UserModel | null>,
): UserCache {
  // By size and not by number, which would take the room for all of them from the beginning: a gateway
  // has a cache for each of hundreds of servers.
  const users = new LRUCache<string, UserModel>({ maxSize: maxUsers, sizeCalculation: () => 1 });
  const refusals = new LRUCache<string, true>({ maxSize: maxRefusals, sizeCalculation: () => 1 });
  const lookups = new Map<string, Promise<UserModel | null>>();

  function start(key: string, token: string, ttl: number): Promise<UserModel | null> {
    const lookup = userForToken(token)
      .then((user) => {
        if (ttl > 0 && user !== null) users.set(key, user, { ttl });
        if (ttl > 0 && user === null) refusals.set(key, true, { ttl });
        return user;
      })
      .finally(() => lookups.delete(key));
    lookups.set(key, lookup);
    return lookup;
  }

  return {
    lookUp({ token, sessionId, maxAgeMs, signal }) {
      // A length in front, because no separator is safe beside a session id anybody may invent.
      const key = hashSecret(`${token.length}:${token}${sessionId ?? ''}`);
      if (maxAgeMs > 0) {
        const user = users.get(key);
        if (user !== undefined) return Promise.resolve(user);
        if (refusals.has(key)) return Promise.resolve(null);
      }
      const lookup = lookups.get(key) ?? start(key, token, maxAgeMs);
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
