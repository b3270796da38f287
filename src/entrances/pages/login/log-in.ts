import type { Context } from 'koa';
import {
  type LoginStep,
  type NextLoginStep,
  type PartialLogins,
  stepSeconds,
} from '../../../identity/accounts/partial-logins.ts';
import type { LoggedIn } from '../../../identity/authentication/login-service.ts';
import type { LoginSession } from '../../../identity/sessions/login-session-store.ts';
import type { Login } from '../../../identity/sessions/login-sessions.ts';
import { type BrowserSessions, loginOf } from '../../../identity/sessions/session-middleware.ts';
import { identifyActor } from '../../../platform/audit/actor.ts';
import type { Sealer } from '../../../platform/crypto/sealer.ts';
import { openOnlyCookie, setCookie } from '../../../platform/http/cookies.ts';
import type { ClientAddress } from '../../../platform/http/request-address.ts';
import type { Metrics } from '../../../platform/metrics/metrics.ts';
import { loginStepCookie } from '../../../platform/protocol/cookie-names.ts';
import type { StartAtLogin } from '../../../workloads/servers/start-at-login.ts';
import type { PageUrls } from '../page-urls.ts';
import type { Landing } from '../servers/landing.ts';
import { keepOpenerFor } from './keep-opener.ts';
import { createKnownBrowser } from './known-browser.ts';

/** What every login method ends with. */
export interface LogIn {
  /**
   * Answers a browser whose user is known: with the next step when the login still needs one, else with a
   * new session and a redirect to `next`, a checked path.
   */
  logIn(
    ctx: Context,
    result: LoggedIn,
    next: string | undefined,
    options?: {
      /** Keeps a session of the same login at the provider that another tab has begun meanwhile. */
      readonly keepsSameSession?: boolean;
    },
  ): Promise<void>;
  /** Answers a browser that has passed a step; with the login page when another tab was faster. */
  completeStep(
    ctx: Context,
    /** Shows a page that leads on, in place of a redirect, where the login is complete. */
    show?: (next: string) => Promise<void>,
  ): Promise<void>;
  /** Id of the browser, when this user has logged in with it before. */
  knownBrowserFor(ctx: Context, userName: string): string | undefined;
  /** The key to the login that stopped halfway in this browser; empty without one. */
  keyOf(ctx: Context): string;
  /** The login that stopped at a step in this browser, and its user. */
  pendingAt(ctx: Context, step: LoginStep): ReturnType<PartialLogins['find']>;
  /** Forgets the login that stopped halfway in this browser. */
  abandon(ctx: Context): Promise<void>;
  /** Sends the browser to the login page. */
  startAgain(ctx: Context): void;
  /** Sends a browser that is logged in already to where the login leads. */
  redirect(ctx: Context, login: Login, next: string | undefined): Promise<void>;
}

export function createLogIn(deps: {
  readonly urls: PageUrls;
  readonly sessions: BrowserSessions;
  readonly partialLogins: PartialLogins;
  /** Encrypts the key to a login between two steps. */
  readonly sealer: Sealer;
  readonly metrics: Metrics;
  readonly landing: Pick<Landing, 'pathFor'>;
  readonly startAtLogin: Pick<StartAtLogin, 'begin'>;
  readonly isSecure: boolean;
}): LogIn {
  const { urls, sessions, partialLogins, sealer, metrics } = deps;

  const knownBrowser = createKnownBrowser({ sealer, path: urls.hub, isSecure: deps.isSecure });

  function setKey(ctx: Context, next: Pick<NextLoginStep, 'key' | 'step'> | undefined): void {
    const sealed = next === undefined ? '' : sealer.seal(next.key, loginStepCookie);
    setCookie(ctx, loginStepCookie, sealed, {
      path: urls.hub,
      secure: deps.isSecure,
      sameSite: 'Strict',
      maxAgeSeconds: next === undefined ? 0 : stepSeconds[next.step],
    });
  }

  const stepUrls: Readonly<Record<LoginStep, string>> = {
    'second-factor': urls.loginSecondFactor,
    'new-password': urls.loginPassword,
    'set-up': urls.loginSetUp,
  };

  const keyOf = (ctx: Context): string =>
    openOnlyCookie(sealer, ctx.req.headers.cookie, loginStepCookie) ?? '';

  /** 303 where a form was sent, so that the browser does not send it again (RFC 9110 §15.4.4). */
  function redirectTo(ctx: Context, url: string): void {
    ctx.redirect(url);
    if (ctx.method !== 'GET') ctx.status = 303;
  }

  function showStep(ctx: Context, next: NextLoginStep): void {
    setKey(ctx, next);
    redirectTo(ctx, stepUrls[next.step]);
  }

  function startAgain(ctx: Context): void {
    setKey(ctx, undefined);
    ctx.redirect(urls.login);
    ctx.status = 303;
  }

  async function beginSession(ctx: Context, result: LoggedIn): Promise<void> {
    const client = ctx.state['client'] as ClientAddress;
    identifyActor({ kind: 'user', name: result.user.name });
    await sessions.begin(ctx, {
      userId: result.user.id,
      authenticator: result.authenticator,
      identityId: result.identityId,
      address: client.address,
      userAgent: ctx.get('User-Agent'),
      upstreamSessionId: result.upstreamSessionId,
      idToken: result.idToken,
      amr: result.amr,
    });
    knownBrowser.save(ctx, result.user.name);
    const login = loginOf(ctx);
    if (login !== undefined) void deps.startAtLogin.begin(login);
  }

  /** The path that it leads to. */
  async function finish(ctx: Context, result: LoggedIn, next: string | undefined): Promise<string> {
    metrics.countLogin(result.authenticator, 'logged_in');
    const path = next ?? (await deps.landing.pathFor(result.user.name));
    redirectTo(ctx, path);
    return path;
  }

  return {
    keyOf,
    knownBrowserFor: (ctx, userName) => knownBrowser.idFor(ctx, userName),
    startAgain,

    async logIn(ctx, result, next, { keepsSameSession = false } = {}) {
      keepOpenerFor(ctx, urls, next);
      const step = await partialLogins.begin(result, next);
      if (step !== undefined) return showStep(ctx, step);
      if (!keepsSameSession || !isSameLogin(loginOf(ctx)?.session, result)) {
        await beginSession(ctx, result);
      }
      await finish(ctx, result, next);
    },

    async pendingAt(ctx, step) {
      const pending = await partialLogins.find(keyOf(ctx), step);
      keepOpenerFor(ctx, urls, pending?.login.next);
      return pending;
    },

    async completeStep(ctx, show) {
      const completed = await partialLogins.completeStep(keyOf(ctx));
      if (completed === undefined) return startAgain(ctx);
      if (completed.outcome === 'step') return showStep(ctx, completed);
      setKey(ctx, undefined);
      await beginSession(ctx, completed.result);
      const path = await finish(ctx, completed.result, completed.next);
      if (show === undefined) return;
      ctx.remove('Location');
      await show(path);
    },

    async abandon(ctx) {
      const key = keyOf(ctx);
      if (key === '') return;
      await partialLogins.abandon(key);
      setKey(ctx, undefined);
    },

    async redirect(ctx, { user }, next) {
      const query = new URLSearchParams(ctx.querystring);
      redirectTo(ctx, next ?? (await deps.landing.pathFor(user.name, query)));
    },
  };
}

function isSameLogin(session: LoginSession | undefined, result: LoggedIn): boolean {
  return (
    session?.identityId === result.identityId &&
    session.upstreamSessionId === result.upstreamSessionId
  );
}
