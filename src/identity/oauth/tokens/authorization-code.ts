/** What an authorization code stands for (RFC 6749 §1.3.1). */
export interface AuthorizationCode {
  readonly clientId: string;
  readonly userId: string;
  /** Browser session in which the user consented. */
  readonly sessionId: string;
  /** As sent in the authorization request; undefined when it was left out. */
  readonly redirectUri: string | undefined;
  readonly scopes: readonly string[];
  /** The parameter `scope` of the authorization request; undefined when it was left out. */
  readonly requestedScope?: string | undefined;
  /** Challenge of the method S256; undefined when the client did not use PKCE. */
  readonly codeChallenge: string | undefined;
  /** Of the authorization request, to be repeated in the ID token (OpenID Connect Core 1.0 §3.1.2.1). */
  readonly nonce?: string | undefined;
  /** When the user last showed who they are; at the beginning of the login unless given. */
  readonly authenticatedAt?: Date | undefined;
}

/** A code that was taken, with what is known of its user and login. */
export interface GrantedCode extends AuthorizationCode {
  readonly userName: string;
  readonly authenticatedAt: Date;
  /** How the user showed who they are (RFC 8176), and what that is worth. */
  readonly amr: readonly string[] | undefined;
  readonly acr: string | undefined;
}
