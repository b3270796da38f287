import type { RequestLike, TokenSource } from './decision.ts';

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

/** The token of the `Authorization` header (`token` or `Bearer`, in any case; RFC 6750 §2.1). */
export function headerToken(request: RequestLike): string | undefined {
  const header = single(request.headers['authorization']);
  return header === undefined ? undefined : /^(?:token|bearer) +(\S+) *$/i.exec(header)?.[1];
}

/** One value of a header that may not be repeated. */
export function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
