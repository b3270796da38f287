/**
 * Errors of the protocol, spelt as RFC 6749 (§4.1.2.1, §5.2), RFC 6750 (§3.1), RFC 8628 (§3.5), RFC 8707 (§2) and OpenID
 * Connect Core 1.0 (§3.1.2.6) spell them.
 */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'invalid_scope'
  | 'access_denied'
  | 'unsupported_response_type'
  | 'invalid_token'
  | 'invalid_target'
  | 'insufficient_scope'
  | 'authorization_pending'
  | 'slow_down'
  | 'expired_token'
  | 'login_required'
  | 'consent_required'
  | 'interaction_required'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'registration_not_supported';

export interface OAuthErrorOptions {
  readonly cause?: unknown;
  /** Seconds until another attempt makes sense; the answer is then 429 with `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

const maxDescriptionLength = 300;

/**
 * A refusal that an OAuth client hears. The description is for the developer of the client: it never
 * holds a code, a token or a secret.
 */
export class OAuthError extends Error {
  override readonly name = 'OAuthError';
  /** The value of the `error` member or parameter. */
  readonly error: OAuthErrorCode;
  readonly retryAfterSeconds: number | undefined;

  constructor(error: OAuthErrorCode, description: string, options: OAuthErrorOptions = {}) {
    super(
      toDescription(description),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.error = error;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Makes a text fit for `error_description`: %x20-21 / %x23-5B / %x5D-7E only (RFC 6749 §4.1.2.1). */
function toDescription(text: string): string {
  return text
    .slice(0, maxDescriptionLength)
    .replaceAll('"', "'")
    .replaceAll('\\', '/')
    .replaceAll(/[^\x20-\x7e]/g, '?');
}
