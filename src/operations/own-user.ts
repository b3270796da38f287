import { HubError } from '../errors.ts';
import type { Caller } from '../rbac/caller.ts';
import type { User } from '../users/user-store.ts';

/** The user who calls. Throws `forbidden` for a service. */
export function ownUserOf({ user }: Pick<Caller, 'user'>): User {
  if (user === undefined) throw new HubError('forbidden', 'Only users have an account.');
  return user;
}

/** The same, and the login that goes on. Throws `forbidden` for who is not logged in with a browser. */
export function ownLoginOf(caller: Caller): { readonly user: User; readonly sessionId: string } {
  const { sessionId } = caller;
  if (sessionId === undefined) throw new HubError('forbidden', 'Log in with a browser for this.');
  return { user: ownUserOf(caller), sessionId };
}
