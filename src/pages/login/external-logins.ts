import type { Context } from 'koa';
import type { Logger } from 'pino';
import type {
  Authenticators,
  NamedAuthenticator,
} from '../../authentication/create-authenticators.ts';
import type { LinkIdentity } from '../../authentication/identity-linking.ts';
import type { LoggedIn, LoginService } from '../../authentication/login-service.ts';
import { HubError } from '../../errors.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { ExternalLoginStart } from '../../plugin-host/authenticator.ts';
import { type BrowserSessions, loginOf } from '../../sessions/session-middleware.ts';
import type { PageContext } from '../page-context.ts';
import type {
  AuthorizationRequestState,
  AuthorizationRequestStates,
} from './authorization-request-states.ts';
import { interstitialRedirect } from './interstitial-redirect.ts';
import { type LoginFailedView, loginFailedPage } from './login-failed-page.ts';
import { beginSession, loginRequestOf } from './login-routes.ts';

/** Sends browsers to external providers and takes them back. */
export interface ExternalLogins {
  /** Begins a login: the answer is a redirect to the provider, or a page that says why not. */
  begin(ctx: Context, authenticatorName: string, next: string | undefined): Promise<void>;
  /** Begins to link an identity to whoever is logged in. */
  beginLink(ctx: Context, authenticatorName: string): Promise<void>;
  /** Answers the browser that comes back from a provider. */
  complete(ctx: Context): Promise<void>;
}

export interface ExternalLoginDeps {
  readonly pages: PageContext;
  readonly authenticators: Authenticators;
  readonly loginService: LoginService;
  readonly linkIdentity: LinkIdentity;
  readonly sessions: BrowserSessions;
  readonly requestStates: AuthorizationRequestStates;
  readonly metrics: Metrics;
  /** Where providers send the browser back, from the public URL and never from the Host header. */
  readonly callbackUrl: string;
  /** Where a login lands that asked for nothing. */
  readonly defaultUrl: string;
  readonly log: Logger;
}

const longestState = 512;

/** Creates the external logins. */
export function createExternalLogins(deps: ExternalLoginDeps): ExternalLogins {
  const { pages, authenticators, loginService, sessions, requestStates, metrics, log } = deps;

  function getExternal(name: string): NamedAuthenticator {
    const found = authenticators.find(name);
    if (found?.authenticator.beginLogin === undefined) {
      throw new HubError('not_found', 'There is no such way to log in.');
    }
    return found;
  }

  async function fail(
    ctx: Context,
    status: number,
    view: Omit<LoginFailedView, 'layout' | 'action' | 'otherWays'>,
    pending?: AuthorizationRequestState,
  ): Promise<void> {
    const retry =
      pending === undefined
        ? pages.urls.login
        : pages.urls.loginWith(pending.authenticator, pending.next);
    const isLink = pending?.linkToSession !== undefined;
    const action = isLink
      ? { label: 'Back to your account', url: pages.urls.account }
      : { label: 'Try again', url: retry };
    const hasOtherWays = !isLink && authenticators.list.length > 1 && retry !== pages.urls.login;
    const layout = await pages.layoutFor(ctx);
    const otherWays = hasOtherWays ? pages.urls.login : undefined;
    pages.send(ctx, loginFailedPage({ layout, ...view, action, otherWays }), status);
  }

  async function failUnavailable(
    ctx: Context,
    via: NamedAuthenticator,
    pending: AuthorizationRequestState,
  ): Promise<void> {
    metrics.countLogin(via.name, 'failed');
    const { label } = via.authenticator.login;
    const message = `${label} does not answer at the moment, so nobody can log in with it.`;
    const hint = 'Wait a little and try again. If this goes on, tell your administrator.';
    await fail(ctx, 503, { title: 'The login provider does not answer', message, hint }, pending);
  }

  /** Asks the authenticator for the way to its provider; undefined after answering that there is none. */
  async function start(
    ctx: Context,
    via: NamedAuthenticator,
    pending: Omit<AuthorizationRequestState, 'state' | 'pending'>,
  ): Promise<string | undefined> {
    let started: ExternalLoginStart | undefined;
    try {
      started = await via.authenticator.beginLogin?.(loginRequestOf(ctx));
    } catch (error) {
      log.warn({ err: error, authenticator: via.name }, 'a login could not begin at the provider');
    }
    if (started === undefined) {
      await failUnavailable(ctx, via, { ...pending, state: '', pending: {} });
      return undefined;
    }
    requestStates.add(ctx, { ...pending, state: started.state, pending: started.pending });
    return started.location;
  }

  /** The login under way that the browser comes back from; undefined after answering. */
  async function takePending(
    ctx: Context,
    query: URLSearchParams,
  ): Promise<AuthorizationRequestState | undefined> {
    const [state = '', ...others] = query.getAll('state');
    const isUsable = state !== '' && state.length <= longestState && others.length === 0;
    const taken = isUsable ? await requestStates.take(ctx, state) : 'missing';
    if (typeof taken === 'object') return taken;
    log.warn(
      { reason: wordsForState[taken], errorCode: query.get('error')?.slice(0, 100) },
      'a browser came back from a login provider without a login under way',
    );
    const hint =
      'Begin again. If that fails too, allow cookies for this site and use one browser throughout.';
    await fail(ctx, 403, { title: 'This login cannot go on', message: pageForState[taken], hint });
    return undefined;
  }

  async function finish(ctx: Context, result: LoggedIn, next: string | undefined): Promise<void> {
    const current = loginOf(ctx)?.session;
    // Another tab was faster: its login, and what hangs on it, goes on.
    const isSame =
      current?.identityId === result.identityId &&
      current.upstreamSessionId === result.upstreamSessionId;
    if (!isSame) await beginSession(ctx, result, sessions);
    metrics.countLogin(result.authenticator, 'logged_in');
    redirect(ctx, next ?? deps.defaultUrl);
  }

  async function finishLink(
    ctx: Context,
    pending: AuthorizationRequestState,
    result: Parameters<LinkIdentity>[1],
  ): Promise<void> {
    const login = loginOf(ctx);
    if (login === undefined || login.session.sessionId !== pending.linkToSession) {
      const message = 'You are no longer logged in as the person this account was to be linked to.';
      const hint = 'Log in again, then link it from your account page.';
      return await fail(ctx, 403, { title: 'The account was not linked', message, hint }, pending);
    }
    const linked = await deps.linkIdentity(login.user, result, pending.authenticator);
    const fields = { user: login.user.name, authenticator: pending.authenticator };
    log.info({ ...fields, outcome: linked.outcome }, 'an identity was to be linked');
    if (linked.outcome === 'linked') {
      const text = `${linked.display} is linked to your account.`;
      return pages.redirectWithNotice(ctx, pages.urls.account, { kind: 'good', text });
    }
    const hint = 'You are still logged in as before.';
    const { message } = linked;
    await fail(ctx, 403, { title: 'The account was not linked', message, hint }, pending);
  }

  return {
    async begin(ctx, authenticatorName, next) {
      const via = getExternal(authenticatorName);
      const location = await start(ctx, via, { authenticator: via.name, next });
      if (location !== undefined) redirect(ctx, location);
    },

    async beginLink(ctx, authenticatorName) {
      const via = getExternal(authenticatorName);
      const linkToSession = loginOf(ctx)?.session.sessionId;
      if (linkToSession === undefined) throw new HubError('forbidden', 'You are not logged in.');
      const url = await start(ctx, via, { authenticator: via.name, linkToSession });
      if (url === undefined) return;
      const { label } = via.authenticator.login;
      interstitialRedirect(ctx, pages, {
        title: 'Link an account',
        provider: label,
        message: `You go on to ${label} and come back when it knows you.`,
        url,
        layout: await pages.layoutFor(ctx),
      });
    },

    async complete(ctx) {
      const query = new URLSearchParams(ctx.querystring);
      const pending = await takePending(ctx, query);
      if (pending === undefined) return;
      const via = getExternal(pending.authenticator);
      if (!query.has('code') && !query.has('error')) {
        log.warn({ authenticator: via.name }, 'the provider sent the browser back without a code');
        const message = 'The login provider sent you back without an answer.';
        const hint = 'Try again. If this goes on, tell your administrator.';
        return await fail(ctx, 403, { title: 'This login cannot go on', message, hint }, pending);
      }
      const url = new URL(deps.callbackUrl);
      url.search = ctx.search;
      const { state } = pending;
      const result = await via.authenticator
        .completeLogin?.({ url, state, pending: pending.pending }, loginRequestOf(ctx))
        .catch((error: unknown) => {
          log.warn({ err: error, authenticator: via.name }, 'the provider failed during a login');
          return undefined;
        });
      if (result === undefined) return await failUnavailable(ctx, via, pending);
      if (pending.linkToSession !== undefined) return await finishLink(ctx, pending, result);
      const concluded = await loginService.concludeLogin(result, via.name);
      if (concluded.outcome === 'logged_in') return await finish(ctx, concluded, pending.next);
      metrics.countLogin(via.name, 'refused');
      const isCancelled = result.outcome === 'refused' && result.reason === 'cancelled';
      const title = isCancelled ? 'You did not log in' : 'You could not be logged in';
      const hint = isCancelled
        ? 'Nothing was shared. Try again if that was not what you wanted.'
        : 'If you think you should have access, ask your administrator.';
      await fail(ctx, concluded.status, { title, message: concluded.message, hint }, pending);
    },
  };
}

const wordsForState = {
  missing: 'the state parameter is missing or not a state',
  unknown: 'the state is not of a login begun in this browser, or that login took too long',
  used: 'the state was used before',
} as const;

const pageForState: Readonly<Record<keyof typeof wordsForState, string>> = {
  missing: 'The login provider sent you back without saying which login this is about.',
  unknown: 'This login was not begun in this browser, or it took too long.',
  used: 'This login has been completed already. It works only once.',
};

/** Not ctx.redirect, which would rewrite the provider's URL. */
function redirect(ctx: Context, location: string): void {
  ctx.status = 302;
  ctx.set('Location', location);
  ctx.body = '';
}
