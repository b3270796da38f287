/** Who a token belongs to, as `GET /hub/api/user` answers. */
export interface UserModel {
  readonly name: string;
  /** A token may belong to a service; absent means a user. */
  readonly kind?: 'user' | 'service';
  readonly admin?: boolean;
  /** May be omitted, depending on permissions. */
  readonly groups?: readonly string[];
  /** What the token may do now. */
  readonly scopes?: readonly string[];
  readonly [field: string]: unknown;
}

/** An authorization code with everything that proves the right to exchange it (RFC 6749 §4.1.3). */
export interface CodeExchange {
  readonly code: string;
  readonly redirectUri: string;
  /** RFC 7636 §4.5 */
  readonly codeVerifier: string;
}

/** What a code became. `refused`: used, expired or not meant for this client (`invalid_grant`). */
export type CodeExchangeResult =
  | {
      readonly outcome: 'issued';
      readonly accessToken: string;
      /** Undefined when the hub names no lifetime. */
      readonly expiresInSeconds?: number | undefined;
    }
  | { readonly outcome: 'refused'; readonly description?: string | undefined };

/**
 * How the client library reaches the hub. Over HTTP unless the hub itself uses the library.
 *
 * Failures are `HubError`: `upstream_failed` when the hub answers 5xx or nonsense, `unavailable` when
 * it cannot be reached, `internal` when it refuses the service's own credentials or request. None of
 * them means "not logged in"; that is what null is for.
 */
export interface HubApi {
  /** The owner of a token, or null when the token identifies no one (any more). */
  userForToken(token: string, signal?: AbortSignal): Promise<UserModel | null>;
  exchangeCode(exchange: CodeExchange, signal?: AbortSignal): Promise<CodeExchangeResult>;
}
