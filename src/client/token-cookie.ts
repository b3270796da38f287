import { LRUCache } from 'lru-cache';
import type { Sealer } from '../crypto/sealer.ts';
import {
  type CookieAttributes,
  cookieValues,
  serializeCookie,
  tokenCookieName,
} from '../http/cookies.ts';

const maxOpened = 10_000;
/** More copies of one cookie than this are somebody's attempt to keep the server busy. */
const maxCopies = 4;

/** The encrypted cookie, confined to the service's path, that holds the visitor's token. */
export interface TokenCookie {
  readonly name: string;
  /** The token in a Cookie header. Undefined also when it holds two different ones. */
  read(cookieHeader: string | undefined): string | undefined;
  /** A Set-Cookie value. */
  write(token: string, attributes: CookieAttributes): string;
}

/** Creates the cookie. What has been opened once is remembered, so that decrypting is rare. */
export function createTokenCookie(sealer: Sealer, clientId: string): TokenCookie {
  const name = tokenCookieName(clientId);
  const context = `token ${clientId}`;
  // By size, so that an idle cookie takes no room for all that it may come to hold.
  const opened = new LRUCache<string, string>({ maxSize: maxOpened, sizeCalculation: () => 1 });

  function open(sealed: string): string | undefined {
    const known = opened.get(sealed);
    if (known !== undefined) return known;
    const token = sealer.open(sealed, context);
    if (token !== undefined) opened.set(sealed, token);
    return token;
  }

  return {
    name,
    read(cookieHeader) {
      const values = cookieValues(cookieHeader, name);
      if (values.length === 1) return open(values[0] ?? '');
      // A page on the same host can plant a cookie with a longer path. Choosing between two genuine
      // ones would let it choose who the visitor is.
      const tokens = new Set(values.slice(0, maxCopies).map(open));
      tokens.delete(undefined);
      const [token] = tokens;
      return tokens.size === 1 && values.length <= maxCopies ? token : undefined;
    },
    write: (token, attributes) => serializeCookie(name, sealer.seal(token, context), attributes),
  };
}
