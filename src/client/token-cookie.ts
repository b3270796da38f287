import { LRUCache } from 'lru-cache';
import { growingUpTo } from '../platform/concurrency/answer-cache.ts';
import type { Sealer } from '../platform/crypto/sealer.ts';
import {
  type CookieAttributes,
  openOnlyCookie,
  serializeCookie,
} from '../platform/http/cookies.ts';

const maxOpened = 10_000;

/** The encrypted cookie, confined to the service's path, that holds the visitor's token. */
export interface TokenCookie {
  readonly name: string;
  /** The token in a Cookie header. Undefined also when it holds two different ones. */
  read(cookieHeader: string | undefined): string | undefined;
  /** A Set-Cookie value. */
  write(token: string, attributes: CookieAttributes): string;
}

/** What has been opened once is remembered, so that decrypting is rare. */
export function createTokenCookie(sealer: Sealer, name: string): TokenCookie {
  const opened = new LRUCache<string, string>(growingUpTo(maxOpened));
  const cachingSealer: Pick<Sealer, 'open'> = {
    open(sealed, context) {
      const known = opened.get(sealed);
      if (known !== undefined) return known;
      const token = sealer.open(sealed, context);
      if (token !== undefined) opened.set(sealed, token);
      return token;
    },
  };

  return {
    name,
    read: (cookieHeader) => openOnlyCookie(cachingSealer, cookieHeader, name),
    write: (token, attributes) => serializeCookie(name, sealer.seal(token, name), attributes),
  };
}
