import type Router from '@koa/router';
import type { Context } from 'koa';
import type { PasskeyLogin } from '../../../identity/accounts/passkey-login.ts';
import { passkeyAnswerOf } from '../../../identity/accounts/passkeys.ts';
import {
  type Authenticators,
  type NamedAuthenticator,
  onlyExternalOf,
} from '../../../identity/authentication/create-authenticators.ts';
import { loginLabels } from '../../../identity/authentication/login-labels.ts';
import type { LoginResult, LoginService } from '../../../identity/authentication/login-service.ts';
import {
  isLogoutRequest,
  type LogoutRequest,
  type ReadLogoutRequest,
} from '../../../identity/oauth/logout/logout-request.ts';
import type { LoginSession } from '../../../identity/sessions/login-session-store.ts';
import { type BrowserSessions, loginOf } from '../../../identity/sessions/session-middleware.ts';
import { HubError } from '../../../platform/errors.ts';
import { cookieValues, setCookie } from '../../../platform/http/cookies.ts';
import type { RedirectLoopGuard } from '../../../platform/http/redirect-loop-guard.ts';
import type { ClientAddress } from '../../../platform/http/request-address.ts';
import type { Metrics } from '../../../platform/metrics/metrics.ts';
import { logoutTargetCookie } from '../../../platform/protocol/cookie-names.ts';
import { text } from '../../../platform/texts/text.ts';
import type { Authenticator, RequestAuthenticator } from '../../../plugin/host/authenticator.ts';
import { isForm, isRequest } from '../../../plugin/host/login-kinds.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import type { PageContext } from '../page-context.ts';
import { askedByApp } from '../preferences.ts';
import { interstitialRedirect } from './interstitial-redirect.ts';
import { keepOpenerFor } from './keep-opener.ts';
import type { LogIn } from './log-in.ts';
import { loggedOutPage } from './logged-out-page.ts';
import { type LoginView, loginPage } from './login-page.ts';
import { loginRequestOf } from './login-request.ts';

/** The same page may send a browser that is logged in here this often in a row; browsers stop at 20. */
const maxRounds = 5;

/** `/hub/login` and `/hub/logout`. */
export function loginRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly authenticators: Authenticators;
    readonly loginService: LoginService;
    readonly sessions: BrowserSessions;
    /** The ID token that came with a login from a provider. */
    readonly idTokenOf: (session: LoginSession) => string | undefined;
    readonly publicUrl: URL;
    readonly metrics: Metrics;
    /** `Authenticator.auto_login`: go straight to the one external provider. */
    readonly isAutoLogin: boolean;
    /** Runs when a person has logged out, by name. */
    readonly afterLogout: (userName: string) => Promise<void>;
    readonly logIn: LogIn;
    readonly readLogoutRequest: ReadLogoutRequest;
    readonly passkeyLogin: PasskeyLogin;
    /** Counts how often a page sends a browser here that is logged in. */
    readonly loopGuard: RedirectLoopGuard;
  },
): void {
  const { pages, authenticators, loginService, sessions, publicUrl, metrics, logIn, loopGuard } =
    deps;
  const { passkeyLogin } = deps;

  async function show(
    ctx: Context,
    rest: Omit<LoginView, 'layout' | 'choices' | 'passkeysOf'>,
    status = 200,
  ): Promise<void> {
    const choices = authenticators.list
      .filter(({ authenticator }) => !isRequest(authenticator))
      .map(({ name, authenticator }) => ({
        authenticator: name,
        method: authenticator.login,
        isUnavailable: authenticator.status?.().state === 'unavailable',
      }));
    pages.send(
      ctx,
      loginPage({
        layout: await pages.formLayoutFor(ctx),
        choices,
        passkeysOf: passkeyLogin.method(),
        ...rest,
      }),
      status,
    );
  }

  async function finish(
    ctx: Context,
    result: LoginResult,
    authenticator: string,
    next: string | undefined,
    typed?: URLSearchParams,
  ): Promise<void> {
    keepOpenerFor(ctx, pages.urls, next);
    if (result.outcome === 'refused') {
      metrics.countLogin(authenticator, result.status === 429 ? 'throttled' : 'refused');
      if (result.retryAfterSeconds !== undefined)
        ctx.set('Retry-After', String(Math.ceil(result.retryAfterSeconds)));
      await show(
        ctx,
        {
          next,
          error: result.message,
          failedAuthenticator: authenticator,
          waitSeconds: result.retryAfterSeconds,
          typed,
        },
        result.status,
      );
      return;
    }
    await logIn.logIn(ctx, result, next);
  }

  /** A page that takes no login of browsers would send them here and be sent them back for ever. */
  function breakLoop(ctx: Context, next: string): void {
    const attributes = { path: pages.urls.login, secure: publicUrl.protocol === 'https:' };
    const round = loopGuard.next(ctx.req.headers.cookie, next);
    if (round < maxRounds) {
      ctx.append('Set-Cookie', loopGuard.save({ next, round }, attributes));
      return;
    }
    ctx.append('Set-Cookie', loopGuard.clear(attributes));
    throw new HubError('forbidden', text`You’re logged in, but this page keeps asking again.`, {
      hint: text`${next.split('?', 1)[0] ?? ''} may be for programs with a token only. Ask its operator.`,
    });
  }

  router.get('/login', async (ctx) => {
    const query = new URLSearchParams(ctx.querystring);
    const next = pages.nextOf(query);
    keepOpenerFor(ctx, pages.urls, next);
    const login = loginOf(ctx);
    if (login !== undefined) {
      // The hub's own pages never send a browser here that is logged in.
      if (next !== undefined && !next.startsWith(pages.urls.hub)) breakLoop(ctx, next);
      await logIn.redirect(ctx, login, next);
      return;
    }
    for (const { name, authenticator } of requestAuthenticators(authenticators)) {
      const result = await authenticator.identify(loginRequestOf(ctx));
      // No user is named: the other login methods are offered. Named but refused: the page says why.
      if (result.outcome === 'refused' && result.reason === 'credentials') continue;
      await finish(ctx, await loginService.concludeLogin(result, name), name, next);
      return;
    }
    const external = onlyExternalOf(authenticators);
    if (deps.isAutoLogin && external !== undefined) {
      ctx.redirect(pages.urls.loginWith(external.name, next));
      return;
    }
    await show(ctx, { next, typed: hintOf(next) });
  });

  router.post('/login', async (ctx) => {
    const form = await pages.readForm(ctx);
    const forms = authenticators.list.filter(({ authenticator }) => isForm(authenticator));
    const wanted = form.get('authenticator') ?? forms[0]?.name ?? '';
    const result = await loginService.attemptLogin(wanted, new Map(form), loginRequestOf(ctx), {
      knownBrowserFor: (userName) => logIn.knownBrowserFor(ctx, userName),
    });
    await finish(ctx, result, wanted, pages.nextOf(form), form);
    // Clients of JupyterHub expect the status with which it answers a login.
    if (ctx.status === 303) ctx.status = 302;
  });

  router.post('/login/passkey', async (ctx) => {
    const form = await pages.readForm(ctx);
    const { address } = ctx.state['client'] as ClientAddress;
    const answer = passkeyAnswerOf(form, form.get('_csrf') ?? '');
    const result = await passkeyLogin.attempt(answer, address);
    await finish(ctx, result, passkeyLogin.method() ?? 'passkey', pages.nextOf(form));
  });

  const logOut = async (ctx: Context, request?: LogoutRequest): Promise<void> => {
    const login = loginOf(ctx);
    const authenticator = authenticators.find(login?.session.authenticator ?? '')?.authenticator;
    const upstream =
      login === undefined ? undefined : await upstreamLogout(login.session, authenticator);
    await sessions.end(ctx);
    if (login !== undefined) await deps.afterLogout(login.user.name);
    await logIn.abandon(ctx);
    // A provider or a proxy in front of the hub has a login of its own, which goes on.
    const isForm = authenticator === undefined || authenticator.login.kind === 'form';
    const provider = isForm ? undefined : loginLabels(authenticator.login.label);
    if (upstream !== undefined && provider !== undefined) {
      const message = text`You are logged out here, and continue to ${provider} to log out there too.`;
      if (request?.target !== undefined) keepTarget(ctx, request.query, 600);
      const layout = await pages.layoutFor(ctx);
      return interstitialRedirect(ctx, pages, {
        layout,
        title: text`Logged out`,
        provider,
        message,
        url: upstream,
      });
    }
    if (request?.target !== undefined) return ctx.redirect(request.target);
    pages.send(ctx, loggedOutPage({ layout: await pages.layoutFor(ctx), provider }));
  };

  async function upstreamLogout(
    session: LoginSession,
    authenticator: Authenticator | undefined,
  ): Promise<string | undefined> {
    const idToken = deps.idTokenOf(session);
    return authenticator?.logoutUrl?.({
      returnTo: new URL(pages.urls.logout, publicUrl).href,
      ...(idToken === undefined ? {} : { idToken }),
    });
  }

  /** Only what a client has registered is gone to, whoever set the cookie. */
  const keepTarget = (ctx: Context, request: string, maxAgeSeconds: number) =>
    setCookie(ctx, logoutTargetCookie, request, {
      path: pages.urls.logout,
      secure: publicUrl.protocol === 'https:',
      maxAgeSeconds,
    });

  const requestOf = (ctx: Context, query = ctx.querystring) => {
    const login = loginOf(ctx);
    return deps.readLogoutRequest(
      new URLSearchParams(query),
      login && { userId: login.user.id, sessionId: login.session.sessionId },
    );
  };

  router.get('/logout', async (ctx) => {
    const login = loginOf(ctx);
    const request = await requestOf(ctx);
    const [kept] = cookieValues(ctx.req.headers.cookie, logoutTargetCookie);
    if (kept !== undefined) keepTarget(ctx, '', 0);
    if (login === undefined && request === undefined && kept !== undefined)
      return logOut(ctx, await requestOf(ctx, kept));
    if (login === undefined || (request === undefined ? !isCrossOrigin(ctx) : request.isHinted))
      return logOut(ctx, request);
    const name = request?.clientName;
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: text`Log out?`,
      consequences: [
        name === undefined
          ? text`Another site sent you here. Logging out closes what you have open in this hub.`
          : text`${name} sent you here. Logging out closes what you have open in this hub.`,
      ],
      label: text`Log out`,
      action: request === undefined ? pages.urls.logout : `${pages.urls.logout}?${request.query}`,
      cancelUrl: pages.urls.home,
    });
    pages.send(ctx, page);
  });
  router.post('/logout', async (ctx) => {
    const form = await pages.readForm(ctx, isLogoutRequest);
    if (form.has('_csrf')) return logOut(ctx, await requestOf(ctx));
    // From another site, with which the browser sends no cookie.
    ctx.redirect(`${pages.urls.logout}?${form}`);
    ctx.status = 303;
  });
}

/** Whether another site made the browser come here: with a link, or with an image on its page. */
function isCrossOrigin(ctx: Context): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  return site === 'cross-site' || site === 'same-site';
}

function requestAuthenticators({
  list,
}: Authenticators): NamedAuthenticator<RequestAuthenticator>[] {
  return list.flatMap(({ name, authenticator }) =>
    isRequest(authenticator) ? { name, authenticator } : [],
  );
}

/** The user name that an app asks for, as if it had been typed (OpenID Connect Core 1.0 §3.1.2.1, `login_hint`). */
function hintOf(next: string | undefined): URLSearchParams | undefined {
  const username = askedByApp(next ?? '', 'login_hint');
  return username === undefined ? undefined : new URLSearchParams({ username });
}
