import type { Caller } from '../identity/rbac/access-check.ts';
import type { User } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';

/** The user who calls. Throws `forbidden` for a service. */
export function ownUserOf({ user }: Pick<Caller, 'user'>): User {
  if (user === undefined) throw notLoggedIn();
  return user;
}

/** The same, and the login that goes on. Throws `forbidden` for who is not logged in with a browser. */
export function ownLoginOf(caller: Caller): { readonly user: User; readonly sessionId: string } {
  const { sessionId } = caller;
  if (sessionId === undefined) throw notLoggedIn();
  return { user: ownUserOf(caller), sessionId };
}

function notLoggedIn(): HubError {
  return new HubError('forbidden', text`Only a user who is logged in with a browser may do this.`);
}
