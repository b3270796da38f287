import type Router from '@koa/router';
import type { Context } from 'koa';
import type { Authenticators } from '../../authentication/create-authenticators.ts';
import type { LoggedIn, LoginResult, LoginService } from '../../authentication/login-service.ts';
import type { ClientAddress } from '../../http/client-address.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { Authenticator, LoginRequest } from '../../plugin-host/authenticator.ts';
import type { LoginSession } from '../../sessions/login-session-store.ts';
import type { BrowserSessions } from '../../sessions/session-middleware.ts';
import { loginOf } from '../../sessions/session-middleware.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import type { PageContext } from '../page-context.ts';
import { interstitialRedirect } from './interstitial-redirect.ts';
import { loggedOutPage } from './logged-out-page.ts';
import { type LoginView, loginPage } from './login-page.ts';

const authenticationTimeoutMs = 30_000;

/** What an authenticator may know of the request of somebody who logs in. */
export function loginRequestOf(ctx: Context): LoginRequest {
  const client = ctx.state['client'] as ClientAddress;
  const headers = Object.fromEntries(
    Object.entries(ctx.req.headersDistinct).map(([name, values]) => [name, values?.join('\n')]),
  );
  return {
    address: client.address,
    peerAddress: client.peerAddress,
    isTrustedProxy: client.isTrustedProxy,
    userAgent: ctx.get('User-Agent').slice(0, 400),
    headers,
    signal: AbortSignal.timeout(authenticationTimeoutMs),
  };
}

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
    /** Where a login lands that asked for nothing. */
    readonly defaultUrl: string;
    /** What stands between a password that was right and a login: a second factor, a new password. */
    readonly continueLogin: (
      ctx: Context,
      result: LoggedIn,
      next: string | undefined,
    ) => Promise<boolean>;
    /** Forgets a login that stopped halfway in this browser. */
    readonly abandonLogin: (ctx: Context) => Promise<void>;
  },
): void {
  const { pages, authenticators, loginService, sessions, metrics } = deps;

  async function show(
    ctx: Context,
    rest: Omit<LoginView, 'layout' | 'choices'>,
    status = 200,
  ): Promise<void> {
    const choices = authenticators.list
      .filter(({ authenticator }) => authenticator.login.kind !== 'request')
      .map(({ name, authenticator }) => ({
        authenticator: name,
        method: authenticator.login,
        isUnavailable: authenticator.status?.().state === 'unavailable',
      }));
    pages.send(
      ctx,
      loginPage({ layout: await pages.formLayoutFor(ctx), choices, ...rest }),
      status,
    );
  }

  async function finish(
    ctx: Context,
    result: LoginResult,
    authenticator: string,
    next: string | undefined,
  ): Promise<void> {
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
        },
        result.status,
      );
      return;
    }
    if (await deps.continueLogin(ctx, result, next)) return;
    await beginSession(ctx, result, sessions);
    metrics.countLogin(authenticator, 'logged_in');
    ctx.redirect(next ?? deps.defaultUrl);
  }

  /** The only configured way to log in, when it is an external provider. */
  function onlyExternal(): string | undefined {
    const [only, ...others] = authenticators.list;
    return others.length === 0 && only?.authenticator.login.kind === 'external'
      ? only.name
      : undefined;
  }

  router.get('/login', async (ctx) => {
    const query = new URLSearchParams(ctx.querystring);
    const next = pages.nextOf(query);
    if (loginOf(ctx) !== undefined) {
      ctx.redirect(next ?? deps.defaultUrl);
      return;
    }
    for (const { name, authenticator } of requestAuthenticators(authenticators)) {
      const result = await authenticator.identify?.(loginRequestOf(ctx));
      if (result === undefined) continue;
      // Nobody is named: the other ways in are offered. Named but refused: the page says why.
      if (result.outcome === 'refused' && result.reason === 'credentials') continue;
      await finish(ctx, await loginService.concludeLogin(result, name), name, next);
      return;
    }
    const external = onlyExternal();
    if (deps.isAutoLogin && external !== undefined) {
      ctx.redirect(pages.urls.loginWith(external, next));
      return;
    }
    await show(ctx, { next });
  });

  router.post('/login', async (ctx) => {
    const form = await pages.readForm(ctx);
    const forms = authenticators.list.filter(
      ({ authenticator }) => authenticator.login.kind === 'form',
    );
    const wanted = form.get('authenticator') ?? forms[0]?.name ?? '';
    const result = await loginService.attemptLogin(wanted, new Map(form), loginRequestOf(ctx));
    await finish(ctx, result, wanted, pages.nextOf(form));
  });

  const logOut = async (ctx: Context): Promise<void> => {
    const login = loginOf(ctx);
    const authenticator = authenticators.find(login?.session.authenticator ?? '')?.authenticator;
    const upstream =
      login === undefined ? undefined : await upstreamLogout(login.session, authenticator);
    await sessions.end(ctx);
    await deps.abandonLogin(ctx);
    // A provider or a proxy in front of the hub has a login of its own, which goes on.
    const provider = authenticator?.login.kind === 'form' ? undefined : authenticator?.login.label;
    if (upstream !== undefined && provider !== undefined) {
      const message = `You are logged out here, and go on to ${provider} to log out there too.`;
      const layout = await pages.layoutFor(ctx);
      return interstitialRedirect(ctx, pages, {
        layout,
        title: 'Logged out',
        provider,
        message,
        url: upstream,
      });
    }
    pages.send(ctx, loggedOutPage({ layout: await pages.layoutFor(ctx), provider }));
  };

  async function upstreamLogout(
    session: LoginSession,
    authenticator: Authenticator | undefined,
  ): Promise<string | undefined> {
    const idToken = deps.idTokenOf(session);
    return authenticator?.logoutUrl?.({
      returnTo: new URL(pages.urls.logout, deps.publicUrl).href,
      ...(idToken === undefined ? {} : { idToken }),
    });
  }

  router.get('/logout', async (ctx) => {
    if (loginOf(ctx) === undefined || !isFromElsewhere(ctx)) return logOut(ctx);
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: 'Log out?',
      consequences: [
        'Another site sent you here. Logging out closes what you have open in this hub.',
      ],
      label: 'Log out',
      action: pages.urls.logout,
      cancelUrl: pages.urls.home,
    });
    pages.send(ctx, page);
  });
  router.post('/logout', async (ctx) => {
    await pages.readForm(ctx);
    await logOut(ctx);
  });
}

/** Whether another site made the browser come here: with a link, or with an image on its page. */
function isFromElsewhere(ctx: Context): boolean {
  const site = ctx.get('Sec-Fetch-Site');
  return site === 'cross-site' || site === 'same-site';
}

/** Makes a login of a result: the session that every page and token hangs on. */
export async function beginSession(
  ctx: Context,
  result: LoggedIn,
  sessions: BrowserSessions,
): Promise<void> {
  const client = ctx.state['client'] as ClientAddress;
  await sessions.begin(ctx, {
    userId: result.user.id,
    authenticator: result.authenticator,
    identityId: result.identityId,
    address: client.address,
    userAgent: ctx.get('User-Agent'),
    upstreamSessionId: result.upstreamSessionId,
    idToken: result.idToken,
  });
}

function requestAuthenticators(authenticators: Authenticators): Authenticators['list'] {
  return authenticators.list.filter(({ authenticator }) => authenticator.login.kind === 'request');
}
