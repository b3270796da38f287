import type Router from '@koa/router';
import type { Context } from 'koa';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { HubError } from '../errors.ts';
import type { RenderErrorPage } from '../http/error-middleware.ts';
import { allowFormTargets } from '../http/security-headers.ts';
import type { ConsentView } from '../oauth/endpoints/consent-view.ts';
import { sessionPageRoutes } from '../pages/account/session-routes.ts';
import { tokenPageRoutes } from '../pages/account/token-routes.ts';
import type { AssetUrls } from '../pages/assets/assets.ts';
import { errorPage } from '../pages/errors/error-page.ts';
import { renderHtml } from '../pages/html.ts';
import { consentPage } from '../pages/login/consent-page.ts';
import { externalLoginRoutes } from '../pages/login/external-login-routes.ts';
import { createLogIn } from '../pages/login/log-in.ts';
import { loginRoutes } from '../pages/login/login-routes.ts';
import { loginStepRoutes } from '../pages/login/login-step-routes.ts';
import { setUpRoutes } from '../pages/login/set-up-routes.ts';
import type { PageContext } from '../pages/page-context.ts';
import type { PageUrls } from '../pages/page-urls.ts';
import { homeRoutes } from '../pages/servers/home-routes.ts';
import { spawnRoutes } from '../pages/servers/spawn-routes.ts';
import { serviceUnavailablePage } from '../pages/services/service-unavailable-page.ts';
import type { Route } from '../proxy/route.ts';
import type { Service } from '../services/service.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import { addAccountPages, addAdminPages } from './account-pages.ts';
import type { HubParts } from './hub-parts.ts';

/** Renders error pages without knowing a request: for every place that must answer a failure. */
export function createErrorPageRenderer(layout: {
  readonly hubTitle: string;
  readonly urls: PageUrls;
  readonly assets: AssetUrls;
}): RenderErrorPage {
  return (error, requestId) =>
    renderHtml(
      errorPage({
        layout: { ...layout, now: new Date(), requestId },
        status: error.status,
        message: error.message,
        hint: error.hint,
        retryAfterSeconds: error.retryAfterSeconds,
        errorId: error.errorId,
      }),
    );
}

/** Renders what a visitor sees while a service or server is not ready. */
export function createNotReadyRenderer(
  layout: { readonly hubTitle: string; readonly urls: PageUrls; readonly assets: AssetUrls },
  registry: () => ServiceRegistry,
): (route: Route, url: string) => { html: string; error: HubError } {
  const retryAfterSeconds = 3;
  return ({ owner }, url) => {
    const name =
      owner.kind === 'service' ? owner.name : owner.kind === 'server' ? owner.userName : 'This';
    const status = owner.kind === 'service' ? registry().statusOf(owner.name) : undefined;
    const page = serviceUnavailablePage({
      layout: { ...layout, now: new Date() },
      serviceName: name,
      isCrashLooping: status?.state === 'crash_looping',
      retryAfterSeconds,
      url,
    });
    const error = new HubError('unavailable', `${name} is not ready.`, {
      hint: 'Try again in a few seconds.',
      retryAfterSeconds,
    });
    return { html: renderHtml(page), error };
  };
}

/** Shows the consent page of an authorization request. */
export function createConsentPresenter(
  pages: PageContext,
): (ctx: Context, view: ConsentView) => Promise<void> {
  return async (ctx, view) => {
    const layout = await pages.formLayoutFor(ctx);
    allowFormTargets(ctx, [view.redirectOrigin]);
    pages.send(
      ctx,
      consentPage({
        layout,
        userName: layout.user?.name ?? '',
        consent: view,
        action: ctx.originalUrl,
      }),
    );
  };
}

/** Adds the pages of people. */
export function addPages(
  router: Router,
  deps: HubParts,
  config: Config,
  secrets: readonly Secret[],
): void {
  const { pages, stores, login, oauth, server, authority, logins, sessions, metrics, apiPath } =
    deps;
  const serverRoutes = {
    pages,
    apiPath,
    authority,
    users: stores.users,
    store: stores.servers,
    ...server,
  };

  const { account } = deps;
  const logIn = createLogIn({
    urls: pages.urls,
    sessions,
    partialLogins: account.partialLogins,
    sealer: createSealer(secrets, 'login-step'),
    metrics,
    defaultUrl: config.Hub.default_url ?? pages.urls.home,
    isSecure: config.publicUrl.protocol === 'https:',
  });
  loginStepRoutes(router, {
    pages,
    logIn,
    partialLogins: account.partialLogins,
    secondFactors: account.secondFactors,
    passwords: account.passwords,
    passwordHasher: login.passwordHasher,
    credentials: stores.credentials,
    metrics,
  });
  loginRoutes(router, {
    pages,
    authenticators: login.authenticators,
    loginService: login.loginService,
    sessions,
    idTokenOf: (session) => logins.idTokenOf(session),
    publicUrl: config.publicUrl,
    metrics,
    isAutoLogin: config.Authenticator.auto_login,
    logIn,
  });
  externalLoginRoutes(router, {
    pages,
    authenticators: login.authenticators,
    externalLogins: deps.externalLogins,
    endUpstreamLogins: deps.revalidation.endUpstreamLogins,
    logIn,
    metrics,
  });
  setUpRoutes(router, {
    pages,
    firstAdministrator: account.firstAdministrator,
    passwords: account.passwords,
  });
  const showHome = homeRoutes(router, {
    pages,
    config,
    authority,
    store: stores.servers,
    servers: server.servers,
    listServices: () =>
      deps.registry
        .services()
        .filter(({ url }) => url !== undefined)
        .map(listedService),
  });
  spawnRoutes(router, { ...serverRoutes, showHome });
  tokenPageRoutes(router, {
    pages,
    accessTokens: stores.accessTokens,
    tokenIssuer: oauth.tokenIssuer,
    maxLifetimeSeconds: config.Hub.token_expires_in_max_seconds,
    clientNameOf: async (clientId) => (await oauth.clients.find(clientId))?.name ?? clientId,
  });
  sessionPageRoutes(router, { pages, logins });
  addAccountPages(router, deps, logIn);
  addAdminPages(router, deps, config);

  function listedService(service: Service) {
    const status = deps.registry.statusOf(service.name);
    const description = service.info['description'];
    const displayName = service.info['title'];
    return {
      name: service.name,
      displayName: typeof displayName === 'string' ? displayName : undefined,
      description: typeof description === 'string' ? description : undefined,
      url: service.prefix,
      state: status?.state ?? ('stopped' as const),
      isDisplayed: service.isDisplayed,
    };
  }
}
