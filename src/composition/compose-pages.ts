import type Router from '@koa/router';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import { createRedirectLoopGuard } from '../http/redirect-loop-guard.ts';
import { sessionPageRoutes } from '../pages/account/session-routes.ts';
import { tokenPageRoutes } from '../pages/account/token-routes.ts';
import { errorRoutes } from '../pages/errors/error-routes.ts';
import { externalLoginRoutes } from '../pages/login/external-login-routes.ts';
import { createLogIn } from '../pages/login/log-in.ts';
import { loginRoutes } from '../pages/login/login-routes.ts';
import { loginStepRoutes } from '../pages/login/login-step-routes.ts';
import { setUpRoutes } from '../pages/login/set-up-routes.ts';
import { homeRoutes } from '../pages/servers/home-routes.ts';
import { createLanding, type Landing } from '../pages/servers/landing.ts';
import { spawnRoutes } from '../pages/servers/spawn-routes.ts';
import { userUrlRoutes } from '../pages/servers/user-url-routes.ts';
import { addAccountPages, addAdminPages } from './account-pages.ts';
import type { HubParts } from './hub-parts.ts';

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
    landingUrl: landingOf(deps, config).url,
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
  errorRoutes(router, { pages });
  loginRoutes(router, {
    pages,
    authenticators: login.authenticators,
    loginService: login.loginService,
    sessions,
    idTokenOf: (session) => logins.idTokenOf(session),
    publicUrl: config.publicUrl,
    metrics,
    isAutoLogin: config.Authenticator.auto_login,
    afterLogout: async (userName) => {
      if (config.Hub.shutdown_on_logout) await server.servers.stopAllOf(userName);
    },
    logIn,
    loopGuard: createRedirectLoopGuard(createSealer(secrets, 'login-round'), 'hub-login-round'),
  });
  externalLoginRoutes(router, {
    pages,
    authenticators: login.authenticators,
    externalLogins: deps.externalLogins,
    endUpstreamLogins: deps.endUpstreamLogins,
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
    registry: deps.registry,
  });
  spawnRoutes(router, {
    ...serverRoutes,
    showHome,
    implicitSpawnSeconds: config.Hub.implicit_spawn_seconds,
  });
  tokenPageRoutes(router, {
    pages,
    accessTokens: stores.accessTokens,
    tokenIssuer: oauth.tokenIssuer,
    maxLifetimeSeconds: config.Hub.token_expires_in_max_seconds,
    clientNameOf: async (clientId) => (await oauth.clients.find(clientId))?.name ?? clientId,
  });
  sessionPageRoutes(router, { pages, logins });
  addAccountPages(router, deps, logIn);
  addAdminPages(router, deps);
}

/** Adds the pages outside `/hub/`: the base URL, and the addresses of servers that do not run. */
export function addOuterPages(router: Router, deps: HubParts, config: Config): void {
  const { pages, apiPath, authority, stores, server } = deps;
  const { basePath } = config;
  const { hub } = pages.urls;
  router.get([basePath, hub, hub.slice(0, -1)], landingOf(deps, config).middleware);
  userUrlRoutes(router, {
    pages,
    basePath,
    apiPath,
    authority,
    users: stores.users,
    store: stores.servers,
    implicitSpawnSeconds: config.Hub.implicit_spawn_seconds,
    ...server,
  });
}

function landingOf({ pages, stores, server }: HubParts, { Hub, basePath }: Config): Landing {
  const { urls } = pages;
  return createLanding({
    config: Hub,
    basePath,
    urls,
    store: stores.servers,
    servers: server.servers,
  });
}
