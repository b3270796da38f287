import type Router from '@koa/router';
import type { RecentLogin } from '../../../identity/accounts/recent-login.ts';
import type { Authenticators } from '../../../identity/authentication/create-authenticators.ts';
import type { ExternalLogins } from '../../../identity/authentication/external-logins.ts';
import { addCookies } from '../../../platform/http/cookies.ts';
import type { Metrics } from '../../../platform/metrics/metrics.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import type { ConfirmLogin } from './confirm-login.ts';
import { showExternalLoginFailure } from './external-login-failure.ts';
import { interstitialRedirect } from './interstitial-redirect.ts';
import { browserRequestOf } from './login-request.ts';

/** `/hub/confirm-login`: where users show again who they are. */
export function confirmLoginRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
    readonly recentLogin: Pick<RecentLogin, 'confirmationOf'>;
    readonly externalLogins: Pick<ExternalLogins, 'begin'>;
    readonly authenticators: Pick<Authenticators, 'list'>;
    readonly metrics: Metrics;
  },
): void {
  const { pages, confirmLogin, externalLogins } = deps;

  router.get(
    '/confirm-login',
    pages.loggedIn(async (ctx, login) => {
      const next = pages.nextOf(new URLSearchParams(ctx.querystring));
      if (!(await confirmLogin.isRecent(ctx, login))) return confirmLogin.ask(ctx, login, { next });
      ctx.redirect(next ?? pages.urls.home);
    }),
  );

  router.post(
    '/confirm-login',
    pages.loggedIn(async (ctx, login) => {
      const form = await pages.readForm(ctx);
      const next = pages.nextOf(form);
      const confirmation = await deps.recentLogin.confirmationOf(login);
      if (confirmation.kind !== 'external') {
        if (!(await confirmLogin.check(ctx, login, form))) return;
        ctx.redirect(next ?? pages.urls.home);
        ctx.status = 303;
        return;
      }
      const { authenticator, provider } = confirmation;
      const begun = await externalLogins.begin(browserRequestOf(ctx), {
        authenticator,
        confirmSession: login.session.sessionId,
        next,
        pendingForm: await confirmLogin.keepForm(login, form),
      });
      if (begun.outcome === 'failed') return showExternalLoginFailure(ctx, begun, deps);
      addCookies(ctx, begun.setCookies);
      interstitialRedirect(ctx, pages, {
        title: text`Confirm it’s you`,
        provider,
        message: text`You continue to ${provider} and come back when you have logged in there once more.`,
        url: begun.location,
        layout: await pages.layoutFor(ctx),
      });
    }),
  );
}
