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
