import {
  callerOfLogin,
  type LoginRevalidation,
} from '../../identity/authentication/user-refresh.ts';
import type { Caller } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { LoginSessions } from '../../identity/sessions/login-sessions.ts';
import type { AccessTarget } from '../../platform/protocol/client-id.ts';
import type { RouteAccess } from './route-access.ts';

/** A visitor who is logged in with a browser, and until when. */
export interface LoggedInVisitor {
  readonly caller: Caller & { readonly sessionId: string };
  readonly expiresAtMs: number;
}

/** Whose login a session id names, confirmed with its provider where that is due; undefined for no live one. */
export type FindVisitor = (sessionId: string) => Promise<LoggedInVisitor | undefined>;

export function createFindVisitor(deps: {
  readonly logins: Pick<LoginSessions, 'find'>;
  readonly revalidation: Pick<LoginRevalidation, 'revalidate'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner'>;
}): FindVisitor {
  return async (sessionId) => {
    const found = await deps.logins.find(sessionId);
    const login = found && (await deps.revalidation.revalidate(found));
    return (
      login && {
        caller: await callerOfLogin(login, deps.authorizer),
        expiresAtMs: login.session.expiresAt.getTime(),
      }
    );
  };
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
const maxSessionIds = 8;

export function createLoginAccess(deps: {
  readonly findVisitor: FindVisitor;
  /** The session ids that a browser shows where servers are. */
  readonly sessionIdsIn: (cookieHeader: string | undefined) => readonly string[];
  readonly access: Pick<RouteAccess, 'isGranted'>;
}): LoginAccess {
  const { findVisitor, access } = deps;

  return {
    async visitorOf(cookieHeader) {
      const sessionIds = new Set(deps.sessionIdsIn(cookieHeader));
      if (sessionIds.size > maxSessionIds) return 'several';
      const found = await Promise.all([...sessionIds].map(findVisitor));
      const [visitor, ...others] = found.filter((each) => each !== undefined);
      return others.length > 0 ? 'several' : visitor;
    },

    async isStillGranted(sessionId, target) {
      const visitor = await findVisitor(sessionId);
      return visitor !== undefined && (await access.isGranted(visitor.caller, target));
    },
  };
}
