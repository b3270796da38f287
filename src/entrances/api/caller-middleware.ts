import type { Context, Middleware } from 'koa';
import { headerToken } from '../../client/credentials.ts';
import { callerOfLogin } from '../../identity/authentication/login-revalidation.ts';
import { OAuthError } from '../../identity/oauth/oauth-error.ts';
import {
  readPresentedToken,
  type TokenVerifier,
} from '../../identity/oauth/tokens/token-verifier.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { Caller } from '../../identity/rbac/caller.ts';
import type { CsrfProtection } from '../../identity/sessions/csrf.ts';
import type { LoginSessions } from '../../identity/sessions/login-sessions.ts';
import { loginOf } from '../../identity/sessions/session-middleware.ts';
import { type Actor, identifyActor } from '../../platform/audit/actor.ts';
import { HubError } from '../../platform/errors.ts';
import { noteCallerName } from '../../platform/http/request-log.ts';

/** The token a request carries; empty when it carries something that cannot be one. */
function presentedToken(ctx: Context): string | undefined {
  try {
    const token = readPresentedToken({
      headerToken: headerToken(ctx.req),
      query: new URLSearchParams(ctx.querystring),
    });
    return token ?? (ctx.req.headers.authorization === undefined ? undefined : '');
  } catch (error) {
    if (error instanceof OAuthError)
      throw new HubError('bad_request', error.message, { cause: error });
    throw error;
  }
}

/**
 * Finds out who calls, into `ctx.state.caller`. A token wins over the login cookie, and a token that
 * is no longer good is never made up for by a cookie. Calls by cookie need the CSRF token of a page in
 * the `X-CSRF-Token` header, unless a window of its own reads the address.
 */
export function callerMiddleware(deps: {
  readonly tokens: TokenVerifier;
  readonly authorizer: Authorizer;
  readonly csrf: CsrfProtection;
  /** Whether the token's owner still has a login at their provider. */
  readonly hasCurrentLogin: (caller: Caller) => Promise<boolean>;
  readonly logins: Pick<LoginSessions, 'find'>;
}): Middleware {
  return async (ctx, next) => {
    ctx.state['caller'] = await identify(ctx);
    ctx.state['findCallerAgain'] = () => findAgain(ctx);
    await next();
  };

  async function findAgain(ctx: Context): Promise<Caller | undefined> {
    const token = presentedToken(ctx);
    if (token !== undefined) return findBearer(token);
    const sessionId = loginOf(ctx)?.session.sessionId;
    const login = sessionId === undefined ? undefined : await deps.logins.find(sessionId);
    return login === undefined ? undefined : callerOfLogin(login, deps.authorizer);
  }

  async function findBearer(token: string): Promise<Caller | undefined> {
    const caller = token === '' ? undefined : await deps.tokens.verify(token);
    return caller !== undefined && (await deps.hasCurrentLogin(caller)) ? caller : undefined;
  }

  async function identify(ctx: Context): Promise<Caller | undefined> {
    const token = presentedToken(ctx);
    if (token !== undefined) {
      const caller = await findBearer(token);
      if (caller === undefined) return undefined;
      noteCallerName(ctx, caller.owner.name);
      identifyActor(actorOf(caller));
      return caller;
    }
    const login = loginOf(ctx);
    if (login === undefined) return undefined;
    deps.csrf.requireForApi(ctx);
    return await callerOfLogin(login, deps.authorizer);
  }
}

function actorOf({ owner, sessionId, accessToken }: Caller): Actor {
  return {
    kind: owner.kind,
    name: owner.name,
    ...(sessionId !== undefined && { sessionId }),
    ...(accessToken !== undefined && { tokenId: accessToken.id }),
  };
}

/** Who calls, found out again: undefined when the token or the login has ended meanwhile. */
export function findCallerAgain(ctx: Context): Promise<Caller | undefined> {
  return (ctx.state['findCallerAgain'] as () => Promise<Caller | undefined>)();
}

/** Who calls, when that could be found out. */
export function callerOf(ctx: Context): Caller | undefined {
  return ctx.state['caller'] as Caller | undefined;
}
