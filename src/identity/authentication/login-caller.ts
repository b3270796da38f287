import type { Authorizer } from '../rbac/authorizer.ts';
import type { Caller } from '../rbac/caller.ts';
import type { Login } from '../sessions/login-sessions.ts';
import type { User } from '../users/user-store.ts';

/** A caller who is logged in with a browser. */
export interface LoginCaller extends Caller {
  readonly user: User;
  readonly sessionId: string;
}

/** The user of a login as a caller, with everything the user may do now. */
export async function callerOfLogin(
  { user, session }: Login,
  authorizer: Pick<Authorizer, 'scopesOfOwner'>,
): Promise<LoginCaller> {
  const owner = { kind: 'user', name: user.name } as const;
  return {
    owner,
    user,
    scopes: await authorizer.scopesOfOwner(owner),
    sessionId: session.sessionId,
  };
}
