import type Router from '@koa/router';
import type { Context } from 'koa';
import {
  type Authenticators,
  onlyExternalOf,
} from '../../../identity/authentication/create-authenticators.ts';
import type { ExternalLogins } from '../../../identity/authentication/external-logins.ts';
import type { EndUpstreamLogins } from '../../../identity/authentication/upstream-logout.ts';
import { loginOf } from '../../../identity/sessions/session-middleware.ts';
import { readFormBody, setBody } from '../../../platform/http/body.ts';
import { addCookies } from '../../../platform/http/cookies.ts';
import { safeRedirectTarget } from '../../../platform/http/redirect-target.ts';
import type { Metrics } from '../../../platform/metrics/metrics.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import type { ConfirmLogin } from './confirm-login.ts';
import { showExternalLoginFailure } from './external-login-failure.ts';
import { interstitialRedirect } from './interstitial-redirect.ts';
import { keepOpenerFor } from './keep-opener.ts';
import type { LogIn } from './log-in.ts';
import { browserRequestOf } from './login-request.ts';

const logoutTokenLimitBytes = 32 * 1024;
const verificationTimeoutMs = 15_000;
interface ExternalLoginDeps {
  readonly pages: PageContext;
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly externalLogins: ExternalLogins;
  readonly metrics: Metrics;
}

/** Sends a browser to an external provider, to come back to `next`; shows a page when that fails. */
async function beginExternalLogin(
  ctx: Context,
  wish: { readonly authenticator: string; readonly next: string | undefined },
  deps: ExternalLoginDeps,
): Promise<void> {
  const begun = await deps.externalLogins.begin(browserRequestOf(ctx), wish);
  if (begun.outcome === 'failed') return showExternalLoginFailure(ctx, begun, deps);
  addCookies(ctx, begun.setCookies);
  // Not ctx.redirect, which would rewrite the provider's URL.
  ctx.status = 302;
  ctx.set('Location', begun.location);
  ctx.body = '';
}

/** Sends a browser to log in and back to `url`: to the provider at once, where that is the only way. */
export async function sendToLogin(
  ctx: Context,
  deps: ExternalLoginDeps & { readonly publicUrl: URL },
  url: string,
): Promise<void> {
  const external = onlyExternalOf(deps.authenticators);
  if (external === undefined) return deps.pages.redirectToLogin(ctx, url);
  const next = safeRedirectTarget(url, deps.publicUrl);
  await beginExternalLogin(ctx, { authenticator: external.name, next }, deps);
}

/** Where browsers leave for external providers and come back, and where providers end logins. */
export function externalLoginRoutes(
  router: Router,
  deps: ExternalLoginDeps & {
    readonly logIn: LogIn;
    readonly confirmLogin: ConfirmLogin;
    readonly endUpstreamLogins: EndUpstreamLogins;
  },
): void {
  const { pages, externalLogins, logIn } = deps;

  router.get('/login/with/:authenticator', async (ctx) => {
    const next = pages.nextOf(new URLSearchParams(ctx.querystring));
    keepOpenerFor(ctx, pages.urls, next);
    const login = loginOf(ctx);
    if (login !== undefined) return logIn.redirect(ctx, login, next);
    const authenticator = ctx.params['authenticator'] ?? '';
    await beginExternalLogin(ctx, { authenticator, next }, deps);
  });

  router.get(['/oauth_callback', '/oauth_callback/:authenticator'], async (ctx) => {
    const completed = await externalLogins.complete(
      browserRequestOf(ctx),
      { authenticator: ctx.params['authenticator'], search: ctx.search },
      loginOf(ctx),
    );
    addCookies(ctx, completed.setCookies);
    switch (completed.outcome) {
      case 'failed':
        return showExternalLoginFailure(ctx, completed, deps);
      case 'linked':
        return pages.redirectWithNotice(ctx, pages.urls.account, {
          kind: 'good',
          text: text`${completed.display} is linked to your account.`,
        });
      case 'confirmed':
        return deps.confirmLogin.goOn(ctx, completed);
      case 'logged_in': {
        const { result, next } = completed;
        return logIn.logIn(ctx, result, next, { keepsSameSession: true });
      }
    }
  });

  router.post(
    '/account/identities/link',
    deps.confirmLogin.change(async (ctx, { session }, form) => {
      const authenticator = form.get('authenticator') ?? '';
      const begun = await externalLogins.begin(browserRequestOf(ctx), {
        authenticator,
        linkToSession: session.sessionId,
      });
      if (begun.outcome === 'failed') return showExternalLoginFailure(ctx, begun, deps);
      addCookies(ctx, begun.setCookies);
      interstitialRedirect(ctx, pages, {
        title: text`Link an account`,
        provider: begun.provider,
        message: text`You continue to ${begun.provider} and come back when it knows you.`,
        url: begun.location,
        layout: await pages.layoutFor(ctx),
      });
    }),
  );

  // OpenID Connect Back-Channel Logout 1.0 §2.5: from the provider itself, so without any cookie.
  router.post('/backchannel_logout', async (ctx) => {
    ctx.set('Cache-Control', 'no-store');
    const form = await readFormBody(ctx.req, logoutTokenLimitBytes);
    const [logoutToken = '', ...others] = form.getAll('logout_token');
    if (logoutToken === '' || others.length > 0) {
      return refuse(ctx, 'There must be exactly one logout_token.');
    }
    const signal = AbortSignal.timeout(verificationTimeoutMs);
    const result = await deps.endUpstreamLogins(logoutToken, { signal });
    if (result.outcome === 'refused') return refuse(ctx, result.message);
    ctx.status = 200;
    ctx.body = '';
  });
}

/** Answers as OpenID Connect Back-Channel Logout 1.0 §2.8 asks. */
function refuse(ctx: Context, description: string): void {
  ctx.status = 400;
  setBody(ctx, { error: 'invalid_request', error_description: description });
}
