import type { Generated } from 'kysely';

export interface AuthorizationCodesTable {
  code_hash: string;
  client_id: string;
  user_id: string;
  session_id: string;
  /** As sent in the authorization request; null when it was left out. */
  redirect_uri: string | null;
  scopes: string;
  /** As sent in the authorization request; null when it was left out. */
  requested_scope: Generated<string | null>;
  code_challenge: string | null;
  /** Of OpenID Connect: repeated in the ID token. */
  nonce: Generated<string | null>;
  /** When the user last showed who they are, as the browser's record told. */
  authenticated_at: Generated<number | null>;
  created_at: number;
  expires_at: number;
  /** Set by the one atomic statement that takes the code. */
  used_at: number | null;
}

export interface AccessTokensTable {
  id: string;
  token_hash: string;
  /** `user`: owned by a user. `service`: owned by a service. `server`: a user's server's own token. */
  kind: string;
  user_id: string | null;
  service_name: string | null;
  server_id: string | null;
  /** OAuth client it was issued to; null for tokens made by hand. */
  client_id: string | null;
  /** Browser session that consented; logging it out revokes the token. */
  session_id: string | null;
  /** The token it was made with; it ends with that one. */
  made_by: string | null;
  /** Hash of the authorization code it came from, so that a replayed code revokes it. */
  code_hash: string | null;
  /** The grant that it was refreshed with, or that came with it; it ends with that one. */
  grant_id: Generated<string | null>;
  scopes: string;
  note: string;
  created_at: number;
  last_used_at: number | null;
  expires_at: number | null;
}

/** Tokens taken over from a JupyterHub that were not used here yet: the hash in `access_tokens` is none of theirs. */
export interface ImportedTokensTable {
  access_token_id: string;
  /** The first characters of the token. */
  prefix: string;
  /** As JupyterHub keeps it: `sha512:<rounds>:<salt>:<hex>`. */
  hash: string;
}

/** Ids of all tokens that were ever taken over, those too that are revoked. */
export interface TakenTokensTable {
  id: string;
}

/** What a user let a client have for as long as it refreshes its tokens. */
export interface GrantsTable {
  id: string;
  user_id: string;
  client_id: string;
  /** The login that it ends with; null where the user let it last beyond. */
  session_id: string | null;
  scopes: string;
  created_at: number;
  /** When its tokens were last refreshed. */
  last_used_at: number;
}

/** Refresh tokens of a grant, of which one is not used. */
export interface RefreshTokensTable {
  token_hash: string;
  grant_id: string;
  used_at: number | null;
}

/** A login that a client was given an ID token of, until the client was told of its end. */
export interface ClientLoginsTable {
  session_id: string;
  client_id: string;
  user_id: string;
  /** When the client is told next; null while the login lasts. */
  due_at: Generated<number | null>;
  attempts: Generated<number>;
}

/** Keys that sign ID tokens: of each algorithm one has no end, and is the newest. */
export interface SigningKeysTable {
  /** `kid` of a token. */
  id: string;
  /** `RS256` or `ES256`. */
  alg: string;
  /** The private key, PKCS #8. */
  sealed: string;
  /** It is published before. */
  active_from: number;
  /** When the last token that it signed has ended. */
  ends_at: number | null;
}
