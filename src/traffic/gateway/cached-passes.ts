import type { RequestLike } from '../../client/decision.ts';
import type { AnswerCache } from '../../platform/concurrency/answer-cache.ts';
import { hasTokenParameter } from '../../platform/protocol/token-parameter.ts';
import {
  type ChangeWatch,
  createChangeAwareCache,
} from '../../platform/store/change-aware-cache.ts';
import type { Authorized } from './access-policy.ts';

const cachedPerRoute = 10_000;
/** After this time the whole check runs again, which is also when activity and refresh are noted. */
const cachedMs = 30_000;
/** A longer Cookie header is checked every time, so that what is remembered stays small. */
const maxCachedCookieLength = 2_048;

/** What was allowed at one route, by Cookie header. */
export function createCachedPasses(changes: ChangeWatch): AnswerCache<Authorized> {
  return createChangeAwareCache({
    changes,
    max: cachedPerRoute,
    ttlMs: cachedMs,
    expiresAtMs: ({ expiresAtMs }) => expiresAtMs,
    invalidatedBy: { endOf: ({ sessionId, accessTokenId }) => [sessionId, accessTokenId] },
  });
}

/** Only what a cookie alone decides may be remembered under that cookie. */
export function cachedKey(request: RequestLike): string | undefined {
  const { cookie, authorization } = request.headers;
  if (typeof cookie !== 'string' || authorization !== undefined) return undefined;
  if (cookie.length > maxCachedCookieLength || hasTokenParameter(request.url ?? ''))
    return undefined;
  return cookie;
}
