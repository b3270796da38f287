import type Router from '@koa/router';
import type { Context } from 'koa';
import type { EndUpstreamLogins } from '../../authentication/upstream-logout.ts';
import { readFormBody } from '../../http/body.ts';
import { loginOf } from '../../sessions/session-middleware.ts';
import type { PageContext } from '../page-context.ts';
import type { ExternalLogins } from './external-logins.ts';

const logoutTokenLimitBytes = 32 * 1024;
const verificationTimeoutMs = 15_000;

/** Where browsers leave for external providers and come back, and where providers end logins. */
export function externalLoginRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly externalLogins: ExternalLogins;
    readonly endUpstreamLogins: EndUpstreamLogins;
    /** Where a login lands that asked for nothing. */
    readonly defaultUrl: string;
  },
): void {
  const { pages, externalLogins } = deps;

  router.get('/login/with/:authenticator', async (ctx) => {
    const next = pages.nextOf(new URLSearchParams(ctx.querystring));
    if (loginOf(ctx) !== undefined) return ctx.redirect(next ?? deps.defaultUrl);
    await externalLogins.begin(ctx, ctx.params['authenticator'] ?? '', next);
  });

  router.get('/oauth_callback', (ctx) => externalLogins.complete(ctx));

  router.post(
    '/account/identities/link',
    pages.loggedIn(async (ctx) => {
      const form = await pages.readForm(ctx);
      await externalLogins.beginLink(ctx, form.get('authenticator') ?? '');
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
  ctx.body = { error: 'invalid_request', error_description: description };
}
