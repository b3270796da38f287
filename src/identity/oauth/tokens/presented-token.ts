import { OAuthError } from '../oauth-error.ts';

/** How a request to a protected resource presents its token. */
export interface TokenPresentation {
  /** In the Authorization header. */
  readonly headerToken: string | undefined;
  readonly query: URLSearchParams;
}

/**
 * Reads the access token of a request: of its Authorization header or of the URL parameter `token`. Undefined when there is none; throws `invalid_request` for more than one, since a
 * client must not use more than one method (RFC 6750 §2).
 */
export function readPresentedToken({ headerToken, query }: TokenPresentation): string | undefined {
  const tokens = query.getAll('token').filter((token) => token !== '');
  if (headerToken !== undefined) tokens.push(headerToken);
  if (tokens.length > 1) {
    throw new OAuthError('invalid_request', 'The request presents more than one token.');
  }
  return tokens[0];
}

/** Why a request to a protected resource is refused (RFC 6750 §3.1). */
export type BearerError = 'invalid_request' | 'invalid_token' | 'insufficient_scope';

/**
 * Value of `WWW-Authenticate` for a refused request (RFC 6750 §3). Without an error, when the request
 * presented no token at all, it says nothing more than that one is needed.
 */
export function bearerChallenge(error?: BearerError, scope?: string): string {
  const details = [
    'realm="hub"',
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(scope === undefined ? [] : [`scope="${scope}"`]),
  ];
  return `Bearer ${details.join(', ')}`;
}
