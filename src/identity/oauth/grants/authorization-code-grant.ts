import type { Client } from '../clients/client.ts';
import { isSameRedirectUri } from '../clients/redirect-uri.ts';
import { OAuthError } from '../oauth-error.ts';
import { verifyCodeVerifier } from '../pkce.ts';
import type { AuthorizationCode } from '../tokens/authorization-code.ts';

/** What an access token request says about the authorization code it presents (RFC 6749 §4.1.3). */
export interface CodePresentation {
  readonly client: Client;
  readonly redirectUri: string | undefined;
  readonly codeVerifier: string | undefined;
}

/** Checks that a code may be exchanged by the one who presents it; throws `invalid_grant`. */
export function verifyCodePresentation(
  code: AuthorizationCode,
  presentation: CodePresentation,
): void {
  requireIssuedToClient(code, presentation);
  requireSameRedirectUri(code, presentation);
  requireMatchingCodeVerifier(code, presentation);
}

/** "Ensure that the authorization code was issued to the authenticated confidential client," or the public one that is named. */
function requireIssuedToClient(code: AuthorizationCode, { client }: CodePresentation): void {
  if (code.clientId !== client.clientId) {
    throw new OAuthError('invalid_grant', 'The code was issued to another client.');
  }
}

/** A redirect URI that the authorization request had must come again, and be the same. */
function requireSameRedirectUri(
  code: AuthorizationCode,
  { client, redirectUri }: CodePresentation,
): void {
  if (redirectUri === undefined) {
    if (code.redirectUri === undefined) return;
    throw new OAuthError('invalid_grant', 'The parameter redirect_uri is missing.');
  }
  const expected = code.redirectUri ?? client.redirectUris[0] ?? '';
  if (!isSameRedirectUri(redirectUri, expected, client.origin)) {
    throw new OAuthError(
      'invalid_grant',
      'The redirect_uri is not that of the authorization request.',
    );
  }
}

function requireMatchingCodeVerifier(
  code: AuthorizationCode,
  { codeVerifier }: CodePresentation,
): void {
  if (code.codeChallenge === undefined) {
    // Someone may have stripped the challenge from the request; the client did not mean to go
    // without (PKCE downgrade, RFC 9700 §4.8.2).
    if (codeVerifier === undefined) return;
    throw new OAuthError(
      'invalid_grant',
      'A code_verifier came without an earlier code_challenge.',
    );
  }
  if (codeVerifier === undefined) {
    throw new OAuthError('invalid_grant', 'The parameter code_verifier is missing.');
  }
  if (!verifyCodeVerifier(codeVerifier, code.codeChallenge)) {
    throw new OAuthError('invalid_grant', 'The code_verifier does not match the code_challenge.');
  }
}
