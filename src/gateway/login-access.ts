import { callerOfLogin, type LoginCaller } from '../authentication/login-caller.ts';
import type { LoginRevalidation } from '../authentication/login-revalidation.ts';
import type { AccessTarget } from '../protocol/access-scope.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { Login, LoginSessions } from '../sessions/login-sessions.ts';
import type { RouteAccess } from './route-access.ts';

/** A visitor who is logged in with a browser, and until when. */
export interface LoggedInVisitor {
  readonly caller: LoginCaller;
  readonly expiresAtMs: number;
}

/** Decides which logins of browsers may open a server. */
export interface LoginAccess {
  /**
   * Whose login the cookies of a browser name; undefined for no live one. `several`: more than one, as where a page
   * planted the session id of its maker, so that there is no telling whose browser it is.
   */
  visitorOf(cookieHeader: string | undefined): Promise<LoggedInVisitor | 'several' | undefined>;
  /** Whether the user of a login that was granted access has it still. */
  isStillGranted(sessionId: string, target: AccessTarget): Promise<boolean>;
}

/** Another hub of the host may have a cookie of that name; more copies are an attempt to hide one. */
const mostSessionIds = 8;

export function createLoginAccess(deps: {
  readonly logins: Pick<LoginSessions, 'find'>;
  /** The session ids that a browser shows where servers are. */
  readonly sessionIdsIn: (cookieHeader: string | undefined) => readonly string[];
  readonly revalidation: Pick<LoginRevalidation, 'revalidate'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner'>;
  readonly access: Pick<RouteAccess, 'isGranted'>;
}): LoginAccess {
  const { logins, revalidation, authorizer, access } = deps;

  async function findLive(sessionId: string): Promise<Login | undefined> {
    const login = await logins.find(sessionId);
    return login && (await revalidation.revalidate(login));
  }

  return {
    async visitorOf(cookieHeader) {
      const sessionIds = new Set(deps.sessionIdsIn(cookieHeader));
      if (sessionIds.size > mostSessionIds) return 'several';
      const found = await Promise.all([...sessionIds].map(findLive));
      const [login, ...others] = found.filter((each) => each !== undefined);
      if (login === undefined) return undefined;
      if (others.length > 0) return 'several';
      return {
        caller: await callerOfLogin(login, authorizer),
        expiresAtMs: login.session.expiresAt.getTime(),
      };
    },

    async isStillGranted(sessionId, target) {
      const login = await findLive(sessionId);
      if (login === undefined) return false;
      return await access.isGranted(await callerOfLogin(login, authorizer), target);
    },
  };
}
