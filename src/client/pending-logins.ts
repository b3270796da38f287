import { createHash } from 'node:crypto';
import { equalSecrets } from '../crypto/hash.ts';
import { randomSecret } from '../crypto/random.ts';
import type { Sealer } from '../crypto/sealer.ts';
import { type CookieAttributes, cookieValues, serializeCookie } from '../http/cookies.ts';

const lifetimeSeconds = 600;
/**
 * Logins of one browser that may be under way together, as when many tabs are restored. All their
 * cookies must stay well below the 16 KiB that Node accepts as headers.
 */
const maxPending = 5;

/** A login that has left for the hub and not come back. */
export interface PendingLogin {
  /** The `state` parameter. */
  readonly state: string;
  /** Path the visitor wanted; undefined for the service's prefix. */
  readonly next?: string | undefined;
  /** RFC 7636 §4.1 */
  readonly codeVerifier: string;
  /** How often the same page has just led to a login. */
  readonly round: number;
  readonly startedAtMs: number;
}

/**
 * Logins under way, kept in encrypted cookies: they survive a restart, work with several processes, and
 * only the browser that began a login can end it. Each has a cookie of its own.
 */
export interface PendingLogins {
  begin(
    cookieHeader: string | undefined,
    wish: Pick<PendingLogin, 'next' | 'round'>,
    attributes: CookieAttributes,
  ): { readonly state: string; readonly codeChallenge: string; readonly setCookies: string[] };
  /** The login with this `state`, if this browser began it. */
  find(cookieHeader: string | undefined, state: string): PendingLogin | undefined;
  /** Set-Cookie values that forget a login. */
  end(
    cookieHeader: string | undefined,
    login: PendingLogin,
    attributes: CookieAttributes,
  ): readonly string[];
}

/** Creates the store of pending logins under a cookie name; further ones get a suffix. */
export function createPendingLogins(sealer: Sealer, cookieName: string): PendingLogins {
  const contextOf = (name: string) => `state ${name}`;
  const suffixedName = (state: string) => `${cookieName}-${state.slice(0, 8)}`;

  function open(name: string, sealed: string): PendingLogin | undefined {
    const text = sealer.open(sealed, contextOf(name));
    if (text === undefined) return undefined;
    const login = JSON.parse(text) as PendingLogin;
    return login.startedAtMs + lifetimeSeconds * 1000 > Date.now() ? login : undefined;
  }

  function openCookie(header: string | undefined, name: string, state: string) {
    return cookieValues(header, name)
      .slice(0, 2)
      .map((sealed) => open(name, sealed))
      .find((login) => login !== undefined && equalSecrets(login.state, state));
  }

  /** Names of cookies to give up so that one more login stays within the limit. */
  function namesToDrop(header: string | undefined, names: readonly string[]): string[] {
    if (names.length < maxPending) return [];
    const ages = names.map((name) => {
      const login = cookieValues(header, name)
        .slice(0, 1)
        .map((sealed) => open(name, sealed))[0];
      return { name, startedAtMs: login?.startedAtMs ?? 0 };
    });
    ages.sort((left, right) => left.startedAtMs - right.startedAtMs);
    return ages.slice(0, names.length - maxPending + 1).map(({ name }) => name);
  }

  return {
    begin(cookieHeader, wish, attributes) {
      const state = randomSecret(24);
      const codeVerifier = randomSecret(32);
      const login: PendingLogin = { ...wish, state, codeVerifier, startedAtMs: Date.now() };
      const taken = namesOf(cookieHeader, cookieName);
      const dropped = namesToDrop(cookieHeader, taken);
      const name = taken.includes(cookieName) ? suffixedName(state) : cookieName;
      const sealed = sealer.seal(JSON.stringify(login), contextOf(name));
      return {
        state,
        codeChallenge: createHash('sha256').update(codeVerifier).digest('base64url'),
        setCookies: [
          ...dropped.map((old) => serializeCookie(old, '', { ...attributes, maxAgeSeconds: 0 })),
          serializeCookie(name, sealed, { ...attributes, maxAgeSeconds: lifetimeSeconds }),
        ],
      };
    },

    find(cookieHeader, state) {
      return (
        openCookie(cookieHeader, suffixedName(state), state) ??
        openCookie(cookieHeader, cookieName, state)
      );
    },

    end(cookieHeader, { state }, attributes) {
      return [suffixedName(state), cookieName]
        .filter((name) => openCookie(cookieHeader, name, state) !== undefined)
        .map((name) => serializeCookie(name, '', { ...attributes, maxAgeSeconds: 0 }));
    },
  };
}

function namesOf(header: string | undefined, base: string): string[] {
  if (header === undefined || !header.includes(base)) return [];
  const names = header.split(';').map((pair) => pair.split('=', 1)[0]?.trim() ?? '');
  const isOwn = (name: string) =>
    name === base || (name.startsWith(`${base}-`) && name.length === base.length + 9);
  return [...new Set(names)].filter(isOwn);
}
