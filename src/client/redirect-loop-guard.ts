import type { Sealer } from '../crypto/sealer.ts';
import { type CookieAttributes, cookieValues, serializeCookie } from '../http/cookies.ts';
import type { PendingLogin } from './pending-logins.ts';

const lifetimeSeconds = 30;

/**
 * Counts how often the same page leads to a login right after one has ended. A login that the browser
 * does not keep would otherwise go round for ever (specification: Authenticated endpoint behaviour).
 */
export interface RedirectLoopGuard {
  /** Zero unless a login for the same page ended in the last seconds. */
  next(cookieHeader: string | undefined, target: string | undefined): number;
  /** A Set-Cookie value that remembers an ended login for a moment. */
  remember(login: PendingLogin, attributes: CookieAttributes): string;
  clear(attributes: CookieAttributes): string;
}

interface EndedLogin {
  readonly next?: string | undefined;
  readonly round: number;
  readonly endedAtMs: number;
}

/** Creates the counter, kept in a short-lived cookie. */
export function createRedirectLoopGuard(sealer: Sealer, cookieName: string): RedirectLoopGuard {
  const context = `round ${cookieName}`;
  return {
    next(cookieHeader, target) {
      const text = sealer.open(cookieValues(cookieHeader, cookieName)[0] ?? '', context);
      if (text === undefined) return 0;
      const ended = JSON.parse(text) as EndedLogin;
      const isRecent = ended.endedAtMs + lifetimeSeconds * 1000 > Date.now();
      return isRecent && ended.next === target ? ended.round + 1 : 0;
    },
    remember({ next, round }, attributes) {
      const ended: EndedLogin = { next, round, endedAtMs: Date.now() };
      return serializeCookie(cookieName, sealer.seal(JSON.stringify(ended), context), {
        ...attributes,
        maxAgeSeconds: lifetimeSeconds,
      });
    },
    clear: (attributes) => serializeCookie(cookieName, '', { ...attributes, maxAgeSeconds: 0 }),
  };
}
