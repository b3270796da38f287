import type { Sealer } from '../crypto/sealer.ts';
import { type CookieAttributes, openCookies, serializeCookie } from './cookies.ts';

const lifetimeMs = 30_000;

/**
 * Counts how often the same page leads to a login right after one has ended. A login that the browser
 * does not keep would otherwise be repeated endlessly (specification: Authenticated endpoint behaviour).
 */
export interface RedirectLoopGuard {
  /** Zero unless a login for the same page ended in the last seconds. */
  next(cookieHeader: string | undefined, target: string | undefined): number;
  /** A Set-Cookie value that remembers an ended login for a moment. */
  save(
    login: { readonly next?: string | undefined; readonly round: number },
    attributes: CookieAttributes,
  ): string;
  clear(attributes: CookieAttributes): string;
}

interface EndedLogin {
  readonly next?: string | undefined;
  readonly round: number;
  readonly endedAtMs: number;
}

export function createRedirectLoopGuard(sealer: Sealer, cookieName: string): RedirectLoopGuard {
  return {
    next(cookieHeader, target) {
      const ended = openCookies(sealer, cookieHeader, cookieName)
        .map((text) => JSON.parse(text) as EndedLogin)
        .find(({ next, endedAtMs }) => next === target && endedAtMs + lifetimeMs > Date.now());
      return ended === undefined ? 0 : ended.round + 1;
    },
    save({ next, round }, attributes) {
      const ended: EndedLogin = { next, round, endedAtMs: Date.now() };
      return serializeCookie(cookieName, sealer.seal(JSON.stringify(ended), cookieName), {
        ...attributes,
        maxAgeSeconds: lifetimeMs / 1000,
      });
    },
    clear: (attributes) => serializeCookie(cookieName, '', { ...attributes, maxAgeSeconds: 0 }),
  };
}
