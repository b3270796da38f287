import { equalSecrets, hashSecret } from '../crypto/hash.ts';
import type { Sealer } from '../crypto/sealer.ts';
import {
  type CookieAttributes,
  cookieNames,
  cookieValues,
  openCookies,
  serializeCookie,
} from './cookies.ts';

const lifetimeSeconds = 600;
/** Logins of one browser that may be under way together, as when many tabs are restored. */
const maxPending = 8;
/** All of them together must leave room for other cookies in the 16 KiB of headers that Node accepts. */
const maxPendingBytes = 6_000;
/** Browsers drop a cookie of more than 4096 bytes, name and attributes included. */
const maxValueLength = 3_800;
const suffixLength = 16;

/** What a login under way must remember until the browser comes back with its `state`. */
export interface PendingState {
  /** Where the login leads; given up when it is too long for a cookie. */
  readonly next?: string | undefined;
}

/**
 * Logins under way, each in an encrypted cookie of its own named by its `state` (RFC 6749 §10.12): they
 * survive a restart, work with several processes, and only the browser that began a login can end it.
 * Every method takes the request's Cookie header, and those that change something return values of
 * Set-Cookie headers.
 */
export interface StateCookies<Pending extends PendingState> {
  /** Keeps a login for ten minutes. The oldest are given up when there are too many. */
  begin(
    cookieHeader: string | undefined,
    state: string,
    pending: Pending,
    attributes: CookieAttributes,
  ): string[];
  /** The login with this `state`, if this browser began it. */
  find(cookieHeader: string | undefined, state: string): Pending | undefined;
  end(state: string, attributes: CookieAttributes): string[];
}

interface Sealed<Pending> {
  readonly state: string;
  readonly pending: Pending;
  readonly startedAtMs: number;
}

/** `name` is the base of the cookies' names: `<name>-<16 characters>`. */
export function createStateCookies<Pending extends PendingState>(
  sealer: Sealer,
  name: string,
  /** Milliseconds since 1970. */
  now: () => number = Date.now,
): StateCookies<Pending> {
  const prefix = `${name}-`;
  const nameOf = (state: string) => prefix + hashSecret(state).slice(0, suffixLength);

  function seal(cookieName: string, state: string, pending: Pending): string {
    const sealed: Sealed<Pending> = { state, pending, startedAtMs: now() };
    return sealer.seal(JSON.stringify(sealed), cookieName);
  }

  function open(cookieHeader: string | undefined, cookieName: string): Sealed<Pending> | undefined {
    return openCookies(sealer, cookieHeader, cookieName)
      .map((text) => JSON.parse(text) as Sealed<Pending>)
      .find(({ startedAtMs }) => startedAtMs + lifetimeSeconds * 1000 > now());
  }

  /** Names of the cookies to give up so that one more of that many bytes stays within the limits. */
  function namesToDrop(cookieHeader: string | undefined, neededBytes: number): string[] {
    const names = cookieNames(cookieHeader, prefix)
      .filter((found) => found.length === prefix.length + suffixLength)
      .slice(0, 50);
    const kept = names
      .map((found) => ({
        name: found,
        byteCount: cookieBytes(cookieHeader, found),
        startedAtMs: open(cookieHeader, found)?.startedAtMs ?? 0,
      }))
      .sort((left, right) => right.startedAtMs - left.startedAtMs);
    let byteCount = neededBytes;
    return kept
      .filter((cookie, index) => {
        byteCount += cookie.byteCount;
        const isKept =
          cookie.startedAtMs > 0 && index < maxPending - 1 && byteCount <= maxPendingBytes;
        return !isKept;
      })
      .map((cookie) => cookie.name);
  }

  return {
    begin(cookieHeader, state, pending, attributes) {
      const cookieName = nameOf(state);
      let value = seal(cookieName, state, pending);
      // Better a login that lands on the start page than one whose cookie the browser drops.
      if (value.length > maxValueLength) {
        value = seal(cookieName, state, { ...pending, next: undefined });
      }
      return [
        ...namesToDrop(cookieHeader, cookieName.length + value.length).map((old) =>
          serializeCookie(old, '', { ...attributes, maxAgeSeconds: 0 }),
        ),
        serializeCookie(cookieName, value, { ...attributes, maxAgeSeconds: lifetimeSeconds }),
      ];
    },

    find(cookieHeader, state) {
      const found = open(cookieHeader, nameOf(state));
      return found !== undefined && equalSecrets(found.state, state) ? found.pending : undefined;
    },

    end: (state, attributes) => [
      serializeCookie(nameOf(state), '', { ...attributes, maxAgeSeconds: 0 }),
    ],
  };
}

function cookieBytes(cookieHeader: string | undefined, name: string): number {
  return cookieValues(cookieHeader, name).reduce(
    (sum, { length }) => sum + name.length + length,
    0,
  );
}
