import type { User } from '../users/user-store.ts';
import type { Owner } from './owner.ts';
import type { ScopeSet } from './scope.ts';

/** Who makes a request, and what they may do in it. */
export interface Caller {
  readonly owner: Owner;
  readonly scopes: ScopeSet;
  /** The owner, when it is a user. */
  readonly user?: User;
  /** Whether it is a command, run by whoever may read the configuration file; it stands for no service that stays. */
  readonly isCommand?: true;
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

/** Whether the request came with a token; otherwise with the login cookie of a browser. */
export function presentsToken({ owner, accessToken }: Caller): boolean {
  // The token of a service stands in the configuration and has no record of its own.
  return owner.kind === 'service' || accessToken !== undefined;
}
