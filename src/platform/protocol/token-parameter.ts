/**
 * The URL parameter `token`, which carries a hub token where no header can be set. All readings of a
 * URL stand here, so that what was taken for a token is also what is removed.
 */

/** The first token in the query of a path or URL; undefined when there is none or it is empty. */
export function tokenParameter(url: string): string | undefined {
  for (const pair of pairsOf(url)) {
    if (!isTokenPair(pair)) continue;
    return new URLSearchParams(pair).get('token') || undefined;
  }
  return undefined;
}

/** Whether the query of a path or URL has a `token` parameter, also an empty one. */
export function hasTokenParameter(url: string): boolean {
  return pairsOf(url).some(isTokenPair);
}

/** Removes every `token` parameter from the query of a path or URL; the rest stays as it was. */
export function withoutTokenParameter(url: string): string {
  const pairs = pairsOf(url);
  const kept = pairs.filter((pair) => !isTokenPair(pair));
  if (kept.length === pairs.length) return url;
  const path = url.slice(0, url.indexOf('?'));
  return kept.length === 0 ? path : `${path}?${kept.join('&')}`;
}

function pairsOf(url: string): string[] {
  const queryAt = url.indexOf('?');
  return queryAt === -1 ? [] : url.slice(queryAt + 1).split('&');
}

function isTokenPair(pair: string): boolean {
  const [name = ''] = pair.split('=', 1);
  if (name === 'token') return true;
  if (!name.includes('%')) return false;
  try {
    return decodeURIComponent(name) === 'token';
  } catch {
    return false; // Not percent-encoded text, so another name.
  }
}

/** Characters; a longer one is none of the hub. */
export const maxTokenLength = 1024;

/** A token in an Authorization header, not yet checked. */
export interface AuthorizationToken {
  readonly token: string;
  /** Whether it is the password of `Basic` (RFC 7617), which browsers send by themselves once they have it. */
  readonly isBasic: boolean;
}

/**
 * The token of an Authorization header: of `Bearer` (RFC 6750 §2.1) or `token`, or the password of `Basic`, whose user
 * name counts for nothing. Undefined for anything else.
 */
export function authorizationToken(header: string | undefined): AuthorizationToken | undefined {
  const [, scheme = '', value = ''] = /^(bearer|token|basic) +(\S+) *$/i.exec(header ?? '') ?? [];
  if (value === '') return undefined;
  if (scheme.toLowerCase() !== 'basic') return { token: value, isBasic: false };
  const pair = Buffer.from(value, 'base64').toString();
  const token = pair.slice(pair.indexOf(':') + 1);
  return pair.includes(':') && token !== '' ? { token, isBasic: true } : undefined;
}

/**
 * In `WWW-Authenticate` for programs, many of which know no other scheme; first, since some read no further. A browser
 * would ask for a password.
 */
export const basicChallenge = 'Basic realm="hub"';
