import type { OAuthError, OAuthErrorCode } from './oauth-error.ts';
import { bearerChallenge } from './tokens/token-verifier.ts';

/** An error answer of an endpoint that clients call directly (RFC 6749 §5.2). */
export interface OAuthErrorResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: string; readonly error_description: string };
}

const challenges: Partial<Record<OAuthErrorCode, readonly [status: number, challenge: string]>> = {
  invalid_client: [401, 'Basic realm="hub"'],
  invalid_token: [401, bearerChallenge('invalid_token')],
  insufficient_scope: [403, bearerChallenge('insufficient_scope')],
};

/**
 * Turns a refusal into the JSON answer of the token, introspection and revocation endpoints: 401 with
 * a challenge for a failed authentication (RFC 6749 §5.2, RFC 6750 §3), in general 400.
 */
export function toOAuthErrorResponse({
  error,
  message,
  retryAfterSeconds,
}: OAuthError): OAuthErrorResponse {
  const body = { error, error_description: message };
  if (retryAfterSeconds !== undefined) {
    return { status: 429, headers: { 'Retry-After': String(retryAfterSeconds) }, body };
  }
  const [status, challenge] = challenges[error] ?? [400, undefined];
  return {
    status,
    headers: challenge === undefined ? {} : { 'WWW-Authenticate': challenge },
    body,
  };
}

/** Where an authorization response goes and how the client recognises it. */
export interface AuthorizationResponseTarget {
  /** Absolute, and already compared with what the client registered. */
  readonly redirectUri: string;
  readonly state: string | undefined;
  readonly issuer: string;
}

/** URL of a successful authorization response (RFC 6749 §4.1.2, RFC 9207 §2). */
export function authorizationResponseUrl(
  target: AuthorizationResponseTarget,
  code: string,
): string {
  return withParameters(target, { code });
}

/** URL of an authorization error response (RFC 6749 §4.1.2.1, RFC 9207 §2). */
export function authorizationErrorUrl(
  target: AuthorizationResponseTarget,
  error: OAuthError,
): string {
  return withParameters(target, { error: error.error, error_description: error.message });
}

function withParameters(
  { redirectUri, state, issuer }: AuthorizationResponseTarget,
  parameters: Readonly<Record<string, string>>,
): string {
  const query = new URLSearchParams(parameters);
  if (state !== undefined) query.set('state', state);
  query.set('iss', issuer);
  // Clients such as Swagger UI decode percent signs and would show the pluses of a form to people.
  const encoded = query.toString().replaceAll('+', '%20');
  // A query that the client registered as part of its URI must stay (RFC 6749 §3.1.2).
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${encoded}`;
}
