import type { User } from '../users/user-store.ts';
import type { Owner } from './owner.ts';
import type { ScopeSet } from './scope.ts';

/** Who makes a request, and what they may do in it. */
export interface Caller {
  readonly owner: Owner;
  readonly scopes: ScopeSet;
  /** The owner, when it is a user. */
  readonly user?: User;
  /** The token that was presented; absent for a browser's login. */
  readonly accessToken?: CallerToken;
  /** Browser session behind the login or the token. */
  readonly sessionId?: string;
}

/** What a request may know about the token it came with; never the token itself. */
export interface CallerToken {
  readonly id: string;
  readonly clientId?: string;
  readonly sessionId?: string;
  readonly note: string;
  readonly expiresAt?: Date;
  /** The user's server whose own token this is. */
  readonly server?: { readonly userName: string; readonly serverName: string };
}
