import type { Owner } from '../../rbac/owner.ts';

/** A stored access token. The secret itself is not here: only its hash is kept. */
export interface AccessToken {
  readonly id: string;
  readonly owner: Owner;
  /** Id of the owner, when it is a user. */
  readonly userId?: string;
  /** The user's server whose own token this is. */
  readonly server?: {
    readonly id: string;
    readonly userName: string;
    readonly serverName: string;
  };
  /** OAuth client it was issued to; absent for tokens made by hand. */
  readonly clientId?: string;
  /** Browser session that consented; logging it out revokes the token. */
  readonly sessionId?: string;
  /** As granted; what they are worth is decided at each use. */
  readonly scopes: readonly string[];
  readonly note: string;
  readonly createdAt: Date;
  readonly lastUsedAt?: Date;
  readonly expiresAt?: Date;
}

/** What a new access token is made from. */
export interface NewAccessToken {
  readonly owner:
    | {
        readonly kind: 'user';
        readonly userId: string;
        /** For the audit log, which finds it out where it is not given. */
        readonly userName?: string;
      }
    | { readonly kind: 'service'; readonly serviceName: string };
  /** Makes it the own token of one of the user's servers. */
  readonly serverId?: string;
  readonly clientId?: string;
  readonly sessionId?: string;
  /** Id of the grant that it ends with, of a client that may refresh its tokens. */
  readonly grantId?: string;
  /** Id of the token it is made with: it ends with that one. */
  readonly madeBy?: string;
  readonly scopes: readonly string[];
  readonly note: string;
  readonly expiresAt?: Date;
}

/** A new access token: the only moment at which its text exists. */
export interface IssuedAccessToken {
  readonly id: string;
  readonly token: string;
}
