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

/** The token of the URL parameter `token`. */
export function urlToken(url: string): string | undefined {
  const query = queryOf(url);
  if (query === undefined || !query.includes('token')) return undefined;
  const token = new URLSearchParams(query).get('token');
  return token === null || token === '' ? undefined : token;
}

/** The URL without its `token` parameters; every other character stays as it was. */
export function withoutUrlToken(url: string): string {
  const query = queryOf(url);
  if (query === undefined) return url;
  const path = url.slice(0, url.length - query.length - 1);
  const rest = query.split('&').filter((pair) => !new URLSearchParams(pair).has('token'));
  return rest.length === 0 ? path : `${path}?${rest.join('&')}`;
}

/** One value of a header that may not be repeated. */
export function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

function queryOf(url: string): string | undefined {
  const at = url.indexOf('?');
  return at === -1 ? undefined : url.slice(at + 1);
}
