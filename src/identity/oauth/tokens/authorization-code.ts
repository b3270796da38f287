/** What an authorization code stands for (RFC 6749 §1.3.1). */
export interface AuthorizationCode {
  readonly clientId: string;
  readonly userId: string;
  /** Browser session in which the user consented. */
  readonly sessionId: string;
  /** As sent in the authorization request; undefined when it was left out. */
  readonly redirectUri: string | undefined;
  readonly scopes: readonly string[];
  /** Challenge of the method S256; undefined when the client did not use PKCE. */
  readonly codeChallenge: string | undefined;
}
