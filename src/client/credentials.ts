import { authorizationToken } from '../platform/protocol/token-parameter.ts';
import { isFromBrowser } from './browser-request.ts';
import { type RequestLike, single, type TokenSource } from './decision.ts';

/** A token a request carries, not yet checked. */
export interface PresentedToken {
  readonly token: string;
  readonly source: TokenSource;
}

const tokenPattern = /^[\x21-\x7e]{1,4096}$/;

/** Whether a text can be a token at all; nothing else is ever sent to the hub. */
export function isTokenShaped(text: string): boolean {
  return tokenPattern.test(text);
}

/**
 * The token of the `Authorization` header. A browser keeps the password of `Basic` and sends it with what any page
 * makes it ask for, so that counts for programs only.
 */
export function headerToken(request: RequestLike): string | undefined {
  const found = authorizationToken(single(request.headers['authorization']));
  return found?.isBasic === true && isFromBrowser(request) ? undefined : found?.token;
}
