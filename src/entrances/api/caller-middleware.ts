import type { Context, Middleware } from 'koa';
import type { Logger } from 'pino';
import { headerToken } from '../../client/decision.ts';
import { callerOfLogin } from '../../identity/authentication/user-refresh.ts';
import { OAuthError } from '../../identity/oauth/oauth-error.ts';
import {
  readPresentedToken,
  type TokenVerifier,
} from '../../identity/oauth/tokens/token-verifier.ts';
import type { Caller } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { CsrfProtection } from '../../identity/sessions/csrf.ts';
import type { LoginSessions } from '../../identity/sessions/login-sessions.ts';
import { loginOf } from '../../identity/sessions/session-middleware.ts';
import { type Actor, identifyActor } from '../../platform/audit/actor.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { HubError } from '../../platform/errors.ts';
import { noteCallerName } from '../../platform/http/request-log.ts';
import { concernsRights } from '../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../platform/store/database.ts';

/** Ends answers that go on, such as event streams, when their caller may have them no more. */
export interface LiveCallers extends Disposable {
  /**
   * Calls `onLost` once `isAllowed` says no, which is asked after every change that can take a right, and now and
   * then. Returns how to stop.
   */
  watch(isAllowed: () => Promise<boolean>, onLost: () => void): () => void;
}

/** How often all are asked though no change is known: a token may have expired. */
const sweepMs = 2_000;

/** Disposing of it ends all answers: the hub stops. */
export function createLiveCallers(deps: {
  readonly database: Pick<HubDatabase, 'onChange' | 'changeFeed'>;
  /** Calls when a login has ended here. */
  readonly onSessionEnd: (listener: () => void) => () => void;
  readonly log: Logger;
}): LiveCallers {
  const { database, log } = deps;
  interface Watched {
    readonly isAllowed: () => Promise<boolean>;
    readonly onLost: () => void;
  }
  const watched = new Set<Watched>();

  function end(each: Watched): void {
    if (watched.delete(each)) each.onLost();
  }

  async function check(each: Watched): Promise<void> {
    try {
      if (!(await each.isAllowed())) end(each);
    } catch (error) {
      // As long as what was known may be gone by, an answer goes on.
      log.debug({ err: error }, 'could not ask again whether a caller may continue');
      if (database.changeFeed.isLost()) end(each);
    }
  }

  const sweeping = createPeriodic({
    intervalMs: sweepMs,
    async work() {
      await Promise.all([...watched].map(check));
    },
    onError: (error) => log.error({ err: error }, 'could not ask which callers may continue'),
  });
  /** After a run under way, which may have asked before the change. */
  const sweep = () => void sweeping.run().then(() => sweeping.run());
  const stopListening = [
    database.onChange((subject) => {
      const { kind } = subject;
      const isEnd = kind === 'session_ended' || kind === 'tokens_revoked';
      if (watched.size > 0 && (isEnd || concernsRights(subject))) sweep();
    }),
    deps.onSessionEnd(() => watched.size > 0 && sweep()),
  ];

  return {
    watch(isAllowed, onLost) {
      const entry = { isAllowed, onLost };
      watched.add(entry);
      return () => void watched.delete(entry);
    },
    [Symbol.dispose]() {
      for (const stop of stopListening) stop();
      sweeping[Symbol.dispose]();
      for (const each of watched) end(each);
    },
  };
}

/** The token a request carries; empty when it carries something that cannot be one. */
export function presentedToken(ctx: Context): string | undefined {
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
