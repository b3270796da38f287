import type { Server } from 'node:http';
import { resolve } from 'node:path';
import Koa from 'koa';
import type { Logger } from 'pino';
import { createAccounts } from './accounts/accounts.ts';
import { loadDirectory } from './accounts/load-directory.ts';
import { authorise } from './api/authorise.ts';
import { callerMiddleware, callerOf } from './api/caller-middleware.ts';
import { endpoints } from './api/endpoints.ts';
import { createApp } from './app.ts';
import { composeAccounts } from './composition/compose-accounts.ts';
import { addApi } from './composition/compose-api.ts';
import { composeExternalLogins } from './composition/compose-external-logins.ts';
import { composeGateway } from './composition/compose-gateway.ts';
import { composeLogin } from './composition/compose-login.ts';
import { composeOAuth } from './composition/compose-oauth.ts';
import { addOuterPages, addPages } from './composition/compose-pages.ts';
import { composeRevalidation } from './composition/compose-revalidation.ts';
import { composeServers } from './composition/compose-servers.ts';
import type { HubParts } from './composition/hub-parts.ts';
import { jupyterHubCompatibility } from './composition/jupyterhub-compatibility.ts';
import { createOAuthEndpoints } from './composition/oauth-endpoints.ts';
import { startPurging } from './composition/purge.ts';
import { registerMetricSources } from './composition/register-metric-sources.ts';
import { createReload, type ReloadedConfig } from './composition/reload.ts';
import { createStores, openStorage } from './composition/stores.ts';
import type { Config } from './config/config.ts';
import { loadCookieSecrets } from './config/cookie-secret.ts';
import { createKeyedHash } from './crypto/keyed-hash.ts';
import { createSealer } from './crypto/sealer.ts';
import { createClientAddressReader, createTrustedPeer } from './http/client-address.ts';
import { createConnectionLimits } from './http/connection-limits.ts';
import { createErrorAnswers } from './http/error-answers.ts';
import { createFairListener } from './http/server/fair-listener.ts';
import { createHubServer } from './http/server/http-server.ts';
import { createInternalListener } from './http/server/internal-listener.ts';
import { listen } from './http/server/listener.ts';
import { createMetrics } from './metrics/metrics.ts';
import { createServiceTokens } from './oauth/tokens/service-tokens.ts';
import { createAnnouncements } from './pages/announcements.ts';
import { loadAssets } from './pages/assets/assets.ts';
import { createErrorPageRenderer } from './pages/errors/error-page-renderer.ts';
import { createPageContext } from './pages/page-context.ts';
import { createPageUrls } from './pages/page-urls.ts';
import { jupyterHubRoutes } from './pages/servers/jupyterhub-routes.ts';
import { createNotReadyRenderer } from './pages/services/not-ready-renderer.ts';
import type { PreparedPlugins } from './plugin-host/prepare-plugins.ts';
import { addExtraRoutes } from './proxy/extra-routes.ts';
import { createRouteTable } from './proxy/route-table.ts';
import { createAuthority } from './rbac/authority.ts';
import { createScopeCatalogue } from './rbac/scope-definitions.ts';
import { createServiceRegistry } from './services/service-registry.ts';
import { createServiceRoutes } from './services/service-routes.ts';
import { createCsrfProtection } from './sessions/csrf.ts';
import { createLoginSessions } from './sessions/login-sessions.ts';
import { createBrowserSessions } from './sessions/session-middleware.ts';

/** A running hub. Disposing of it stops everything it started, in reverse. */
export interface Hub extends AsyncDisposable {
  readonly publicServer: Server;
  readonly internalServer: Server;
  readonly publicUrl: URL;
  /** The one-time link for the first administrator, while there is none. */
  readonly setUpUrl: string | undefined;
  /** Whether a service has neither become ready nor failed for the first time. */
  isServiceStarting(): boolean;
  /** Resolves when somebody asks over the API for the hub to stop. */
  readonly stopRequested: Promise<void>;
  /** Changes to a new, already checked configuration, and logs the difference. */
  reload(reloaded: ReloadedConfig): Promise<void>;
}

export interface HubOptions {
  readonly config: Config;
  readonly plugins: PreparedPlugins;
  readonly version: string;
  readonly nodeVersion: string;
  /** The hub's own environment: children get an allow-list of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** Lines of the log that were lost so far. */
  readonly droppedLogLines: () => number;
}

const internalGraceMs = 5_000;

/** Builds every part of the hub, lowest first, and listens. Throws with nothing left running. */
export async function createHub(options: HubOptions): Promise<Hub> {
  await using building = new AsyncDisposableStack();
  const { config, plugins, version, environment, log } = options;
  const { Hub, Proxy: proxyConfig, basePath, publicUrl, directory } = config;
  const { loginLifetimeSeconds: lifetimeSeconds } = config;
  const secrets = await loadCookieSecrets({
    configured: Hub.cookie_secret,
    file: resolve(directory, Hub.cookie_secret_file),
  });
  const { database, keyv } = await openStorage(config, log, building);
  const stores = createStores(database, secrets);
  building.use(startPurging(stores, log));
  const metrics = createMetrics();
  const catalogue = createScopeCatalogue(Hub.custom_scopes);
  await loadDirectory(config, { ...stores, catalogue, log });

  const isHttps = publicUrl.protocol === 'https:';
  const apiPath = `${basePath}hub/api/`;
  const apiUrl = new URL(apiPath.slice(0, -1), Hub.hub_bind_url).href;
  const jupyterHub = jupyterHubCompatibility(Hub.environment_prefixes, version);

  const clientAddress = createClientAddressReader(Hub.trusted_proxies);
  const serviceTokens = createServiceTokens();
  const authority = createAuthority({
    catalogue,
    users: stores.users,
    groups: stores.groups,
    roles: stores.roles,
    services: () => registry.services().map(({ name, isAdmin }) => ({ name, admin: isAdmin })),
    database,
    log,
  });
  const logins = building.use(
    createLoginSessions({
      store: stores.loginSessions,
      users: stores.users,
      database,
      sealer: createSealer(secrets, 'id-token'),
      lifetimeSeconds,
      log,
    }),
  );
  const oauth = composeOAuth(
    {
      config,
      stores,
      database,
      authority,
      services: () => registry.services(),
      serviceTokens,
      clientAddress,
      metrics,
      log,
    },
    building,
  );
  const login = await composeLogin({ config, plugins, secrets, stores, keyv, log }, building);
  const { revalidation, spawnHooks, endUpstreamLogins } = composeRevalidation({
    config,
    database,
    stores,
    keyv,
    login,
    logins,
    log,
  });

  const urls = createPageUrls(basePath);
  const assets = await loadAssets({
    staticUrl: `${urls.hub}static/`,
    accentColour: Hub.accent_color,
  });
  const layoutProps = { hubTitle: Hub.title, urls, assets };
  const renderErrorPage = createErrorPageRenderer(layoutProps);
  const errorAnswers = createErrorAnswers({ renderErrorPage, isHttps, log });

  const routes = createRouteTable({
    reservedPrefixes: [urls.hub],
    sessionIdAliases: jupyterHub.sessionIdAliases,
  });
  addExtraRoutes(routes, config);
  const stopRequested = Promise.withResolvers<void>();
  let stopsServers = Hub.cleanup_servers;
  const server = await composeServers(
    {
      config,
      plugins,
      stores,
      oauth,
      routes,
      metrics,
      apiUrl,
      environment,
      stopsServersAtEnd: () => stopsServers,
      ...spawnHooks,
      log,
    },
    building,
  );
  const gatewayParts = composeGateway(
    {
      config,
      secrets,
      database,
      oauth,
      authority,
      logins,
      routes,
      clientAddress,
      errorAnswers,
      renderNotReadyPage: createNotReadyRenderer(layoutProps, (name) => registry.statusOf(name)),
      hasCurrentLogin: revalidation.hasCurrentLogin,
      noteActivity: (userId) => server.activityLog.noteUser(userId),
      log,
    },
    building,
  );
  const { gateway, assertions } = gatewayParts;

  // The registry stops its services when it is disposed of: after the listeners, before the stores.
  const registry = building.use(
    createServiceRegistry({
      configs: Hub.services,
      directory,
      logDirectory: resolve(directory, Hub.log_dir),
      prefixes: Hub.environment_prefixes,
      inherited: environment,
      apiUrl,
      publicUrl,
      basePath,
      routes: createServiceRoutes(routes),
      store: stores.managedProcesses,
      tokens: serviceTokens,
      announceChange: () => database.announceChange(),
      log,
    }),
  );

  const app = new Koa();
  const csrf = createCsrfProtection({
    keyedHash: createKeyedHash(secrets, 'csrf'),
    publicUrl,
    cookiePath: urls.hub,
  });
  const sessions = createBrowserSessions({
    app,
    store: keyv.space('sessions'),
    sealer: createSealer(secrets, 'login-cookie'),
    logins,
    basePath,
    isSecure: isHttps,
    lifetimeSeconds,
    sessionIdAliases: jupyterHub.sessionIdAliases,
    // Logging out works whatever the provider says.
    revalidate: async (found, ctx) =>
      ctx.path === urls.logout ? found : revalidation.revalidate(found),
  });
  const announcements = createAnnouncements(urls.hub, Hub);
  const pages = createPageContext({
    hubTitle: Hub.title,
    urls,
    assets,
    publicUrl,
    csrf,
    authority,
    announcements,
    formLimitBytes: proxyConfig.api_body_size,
  });
  const accounts = createAccounts({
    users: stores.users,
    names: login.names,
    authority,
    logins,
    withoutServersOf: (user, work) => server.servers.withoutServersOf(user, work),
    async onDelete(userName) {
      for (const { authenticator } of login.authenticators.list)
        await authenticator.deleteUser?.(userName);
    },
  });
  const deps: HubParts = {
    database,
    stores,
    authority,
    logins,
    sessions,
    csrf,
    login,
    endUpstreamLogins,
    externalLogins: composeExternalLogins({ pages, login, log }, { config, secrets, keyv }),
    oauth,
    server,
    registry,
    routes,
    metrics,
    pages,
    apiPath,
    accounts,
    account: composeAccounts({
      config,
      stores,
      keyv,
      login,
      logins,
      authority,
      accounts,
      urls,
    }),
    log,
  };
  registerMetricSources({ ...options, ...deps, ...gatewayParts });

  createApp({
    app,
    basePath,
    isHttps,
    log,
    clientAddress,
    metrics,
    assets,
    errorAnswers,
    sessions: sessions.middleware,
    callerMiddleware: callerMiddleware({
      tokens: oauth.tokenVerifier,
      authority,
      csrf,
      hasCurrentLogin: revalidation.hasCurrentLogin,
    }),
    oauth: createOAuthEndpoints(deps, config, log),
    async requireMetricsAccess(ctx, next) {
      if (Hub.authenticate_prometheus)
        authorise(endpoints.metrics, {}, callerOf(ctx), await authority.membership());
      await next();
    },
    addApiRoutes: (router) =>
      addApi(router, deps, config, {
        info: {
          version,
          apiVersion: jupyterHub.apiVersion,
          nodeVersion: options.nodeVersion,
          spawner: config.Spawner.class,
          authenticators: config.authenticators.map(({ name, class: className }) => ({
            name,
            class: className,
          })),
        },
        assertions,
        requestStop({ servers }) {
          stopsServers = servers ?? stopsServers;
          stopRequested.resolve();
        },
      }),
    addPageRoutes(router) {
      addPages(router, deps, config, secrets);
      if (jupyterHub.hasAddresses) jupyterHubRoutes(router, { assets });
    },
    addOuterRoutes: (router) => addOuterPages(router, deps, config),
    compatibilityHeaders: jupyterHub.headers,
  });

  const answerHub = createFairListener(app.callback(), [`${urls.hub}health`, `${apiPath}health`]);
  const publicServer = createHubServer({
    config: proxyConfig,
    log,
    limits: createConnectionLimits({
      perAddress: proxyConfig.max_connections_per_address,
      inAll: proxyConfig.max_connections,
      isTrustedPeer: createTrustedPeer(Hub.trusted_proxies),
    }),
    request(req, res) {
      if (!gateway.handleRequest(req, res)) answerHub(req, res);
    },
    upgrade: gateway.handleUpgrade,
  });
  const internalServer = createHubServer({
    config: proxyConfig,
    log,
    request: createInternalListener({ answerHub, apiPath, hubPath: urls.hub, errorAnswers }),
  });

  const { restored, gone } = await server.lifecycle.restore();
  if (restored + gone > 0) log.info({ restored, gone }, 'looked for the servers of an earlier run');
  await listen(internalServer.server, Hub.hub_bind_url, 'Hub.hub_bind_url');
  building.defer(() => internalServer.close(internalGraceMs));
  await listen(publicServer.server, Hub.bind_url, 'Hub.bind_url');
  building.defer(() => publicServer.close(Hub.shutdown_timeout * 1000, gatewayParts.streams));
  await registry.start();
  const setUpUrl = await deps.account.firstAdministrator.issueLink();

  // Before requests in flight are waited for: some of them follow a start to its end.
  building.defer(() => server.lifecycle.close());

  const built = building.move();
  return {
    publicServer: publicServer.server,
    internalServer: internalServer.server,
    publicUrl,
    setUpUrl: setUpUrl?.href,
    isServiceStarting: () =>
      registry.statuses().some(({ state, restarts }) => state === 'starting' && restarts === 0),
    stopRequested: stopRequested.promise,
    reload: createReload({ ...deps, current: config, announcements, catalogue }),
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}
