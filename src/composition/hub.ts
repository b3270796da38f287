import type { Server } from 'node:http';
import Koa, { type Context } from 'koa';
import type { ReloadReport } from '../cluster/instances/reload-operation.ts';
import { auditMiddleware } from '../entrances/api/audit-middleware.ts';
import { callerMiddleware, callerOf } from '../entrances/api/caller-middleware.ts';
import { endpoints } from '../entrances/api/endpoints.ts';
import { createLiveCallers } from '../entrances/api/live-callers.ts';
import { readinessMiddleware } from '../entrances/api/readiness.ts';
import { createUserErrorPages } from '../entrances/pages/errors/error-page-renderer.ts';
import { errorRoutes } from '../entrances/pages/errors/error-routes.ts';
import type { Entrance } from '../entrances/pages/forms/binding.ts';
import { formRedirects } from '../entrances/pages/login/interstitial-redirect.ts';
import { authorise } from '../operations/authorise.ts';
import type { HubInfo } from '../operations/info.ts';
import type { Config } from '../platform/config/config.ts';
import { addAccountPages } from './account-pages.ts';
import { addAdminPages } from './admin-pages.ts';
import { createApp } from './app.ts';
import { composeAccounts } from './compose-accounts.ts';
import { composeAnnouncements } from './compose-announcements.ts';
import { composeAudit } from './compose-audit.ts';
import { composeBrowser } from './compose-browser.ts';
import { composeGateway } from './compose-gateway.ts';
import { composeGateways } from './compose-gateways.ts';
import { addApi, composeOperations } from './compose-operations.ts';
import { composeSharing } from './compose-sharing.ts';
import { type HubOptions, openFoundation } from './foundation.ts';
import { openIdentity } from './identity.ts';
import { takeInstanceLocks } from './instance-locks.ts';
import { addLoginPages } from './login-pages.ts';
import { createOAuthEndpoints } from './oauth-endpoints.ts';
import { openListeners } from './open-listeners.ts';
import { openProxyApi } from './open-proxy-api.ts';
import { startPurging } from './purge.ts';
import { createReadiness } from './readiness.ts';
import { recordLife } from './record-life.ts';
import { registerMetricSources } from './register-metric-sources.ts';
import { createReload, onReload, type ReloadedConfig, type ReloadListeners } from './reload.ts';
import { addOuterPages, addServerPages } from './server-pages.ts';
import { openWork } from './servers.ts';
import { watchSettings } from './settings-difference.ts';
import { openSite } from './site.ts';
import { createStopRequest } from './stop-request.ts';

/** A running hub. Disposing of it stops everything it started, in reverse. */
export interface Hub extends AsyncDisposable {
  readonly publicServer: Server;
  readonly internalServer: Server;
  readonly publicUrl: URL;
  /** The one-time link for the first administrator, while there is none. */
  readonly setUpUrl: string | undefined;
  /** Pages and forms by which operations are performed, beside the API. */
  readonly entrances: readonly Entrance[];
  /** Whether a service has neither become ready nor failed for the first time. */
  isServiceStarting(): boolean;
  /** Resolves when the hub is asked over the API to stop. */
  readonly stopRequested: Promise<void>;
  /** Makes its gateway processes end with it; otherwise they wait for the next hub. */
  endGateways(): void;
  /** Changes to a new, already checked configuration, and logs and tells the difference. */
  reload(reloaded: ReloadedConfig): Promise<ReloadReport>;
  /** Makes the other instances read their configuration files again. */
  requestReload(): Promise<void>;
  /** Calls back when another instance asks for that, or an operator of this one. */
  onReloadRequested(listeners: ReloadListeners): void;
}

/**
 * Builds a hub. Its addresses and locks come first: a second hub that was started by mistake fails
 * there, before it looks at what earlier runs left. Throws with nothing left running, the reason of
 * `signal` when that is aborted.
 */
export async function createHub(options: HubOptions): Promise<Hub> {
  await using building = new AsyncDisposableStack();
  const { branding, ...rest } = options;
  const { config, version, environment, log, droppedLogLines, signal } = options;
  const { Hub } = config;

  const site = await openSite({ config, log }, version);
  site.setBranding(branding);
  const listeners = await openListeners({ config, log, disposables: building }, site);
  await takeInstanceLocks(config, building);
  signal?.throwIfAborted();
  const ending = new AbortController();
  const stopping = AbortSignal.any([ending.signal, ...(signal === undefined ? [] : [signal])]);
  const foundation = await openFoundation({
    ...rest,
    ...site,
    brandingDigest: branding.digest,
    disposables: building,
    stopping,
  });
  const { database, metrics } = foundation;
  composeAudit(foundation);
  building.use(startPurging(foundation));
  signal?.throwIfAborted();
  let isReady = false;
  const stop = createStopRequest({ stopsServers: Hub.cleanup_servers });
  const hub = await openWork(
    await openIdentity(foundation),
    // A start that fails or is ended leaves alone what runs.
    () => isReady && stop.stopsServers(),
  );
  const { authorizer, jupyterHub, logins, registry, revalidation, routes } = hub;
  const [instances, services, oauth, login, servers, loads] = [hub, hub, hub, hub, hub, hub];
  const gateway = composeGateway(foundation, {
    site,
    oauth,
    authorizer,
    logins,
    services,
    servers,
    instances,
    revalidation,
  });
  const announcements = await composeAnnouncements(foundation, site);
  const gateways = composeGateways(foundation, {
    announcements,
    gateway,
    authorizer,
    version,
    branding: site.publishedBranding,
    environment,
    program: options.program ?? [],
  });
  instances.tellGateways(gateways.list);
  await gateways.requirePort();
  const { publicServer, internalServer } = listeners;
  const readiness = createReadiness(
    foundation,
    // With gateways, they listen in public.
    Hub.gateways > 0 ? [internalServer] : [publicServer, internalServer],
  );
  registerMetricSources(foundation, {
    services,
    instances,
    version,
    servers,
    loads,
    gateway,
    gateways,
    readiness,
    droppedLogLines,
  });

  const accounts = composeAccounts(foundation, {
    site,
    login,
    logins,
    authorizer,
    servers,
    services,
  });
  const sharing = composeSharing(foundation, { authorizer, site, servers, accounts });
  const app = new Koa();
  const browser = composeBrowser(foundation, {
    announcements,
    app,
    site,
    authorizer,
    logins,
    accounts,
    servers,
    revalidation,
  });
  const identify = callerMiddleware({
    tokens: hub.tokenVerifier,
    authorizer,
    csrf: browser.csrf,
    hasCurrentLogin: revalidation.hasCurrentLogin,
    logins,
  });
  const liveCallers = building.use(
    createLiveCallers({ database, onSessionEnd: logins.onEnd, log }),
  );
  async function requireMetricsAccess(ctx: Context): Promise<void> {
    if (!Hub.authenticate_prometheus) return;
    authorise(endpoints.metrics, {}, callerOf(ctx), await authorizer.membership());
  }
  const entrances: Entrance[] = [];
  /** Each takes what it needs of them. */
  const composed = {
    site,
    browser,
    authorizer,
    oauth,
    login,
    logins,
    accounts,
    servers,
    services,
    gateway,
    gateways,
    instances,
    loads,
    sharing,
    liveCallers,
  };
  const perform = composeOperations(foundation, {
    ...composed,
    stop,
    info: hubInfo(config, { ...options, apiVersion: jupyterHub.apiVersion }),
  });
  const parts = { ...composed, perform, entrances };
  createApp({
    ...site,
    pictureOrigins: Hub.picture_origins,
    app,
    basePath: config.basePath,
    log,
    metrics,
    renderErrorPage: createUserErrorPages(browser.pages, browser.csrf),
    audit: auditMiddleware(database.audit),
    compatibilityHeaders: jupyterHub.headers,
    sessions: browser.sessions.middleware,
    formRedirects: formRedirects(browser.pages, config.publicUrl),
    csrf: browser.csrf,
    callerMiddleware: identify,
    readiness: readinessMiddleware({
      check: readiness.check,
      requireDetailAccess: (ctx) => identify(ctx, () => requireMetricsAccess(ctx)),
    }),
    oauth: createOAuthEndpoints(foundation, { oauth, authorizer, browser, login }),
    async requireMetricsAccess(ctx, next) {
      await requireMetricsAccess(ctx);
      await next();
    },
    addApiRoutes: (router) => addApi(router, foundation, parts),
    addPageRoutes(router) {
      errorRoutes(router, browser);
      addLoginPages(router, foundation, { ...parts, endUpstreamLogins: hub.endUpstreamLogins });
      addServerPages(router, foundation, parts);
      addAccountPages(router, foundation, parts);
      addAdminPages(router, foundation, parts);
    },
    addOuterRoutes: (router) => addOuterPages(router, foundation, parts),
  });

  signal?.throwIfAborted();
  const { restored, gone } = await servers.lifecycle.restore();
  if (restored + gone > 0) log.info({ restored, gone }, 'servers of earlier run restored');
  await registry.watchExternal();
  signal?.throwIfAborted();
  listeners.serve({ app, gateway, instances, gateways });
  await openProxyApi(foundation, { routes, site });
  void instances.checkOwnAddress();
  if (database.dialect === 'postgres') building.use(watchSettings(foundation, instances));
  await registry.start(signal);
  signal?.throwIfAborted();
  const setUpUrl = await accounts.firstAdministrator.issueLink();

  // After the starts: pages follow these to their end.
  building.defer(() => liveCallers[Symbol.dispose]());
  // Before requests in flight are waited for: some of them follow a start to its end.
  building.defer(() => servers.lifecycle.close());
  building.defer(() => ending.abort());
  building.defer(() => gateways.close());

  await gateways.open(signal);
  building.use(await recordLife(foundation, version));
  const built = building.move();
  isReady = true;
  return {
    publicServer: listeners.publicServer,
    internalServer: listeners.internalServer,
    publicUrl: config.publicUrl,
    setUpUrl: setUpUrl?.href,
    entrances,
    isServiceStarting: () =>
      registry.statuses().some(({ state, restarts }) => state === 'starting' && restarts === 0),
    stopRequested: stop.requested,
    endGateways: () => gateways.endThem(),
    reload: createReload(foundation, {
      login,
      services,
      browser,
      site,
      gateways,
      languages: site.languages,
      brandingDigest: branding.digest,
      catalogue: hub.catalogue,
      ...accounts,
    }),
    requestReload: () => database.requestReload(instances.instance.id),
    onReloadRequested: (listeners) => onReload(listeners, { database, instances, log }),
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

/** What `GET /hub/api/info` says of the program. */
function hubInfo(
  { spawners, authenticators }: Config,
  program: { readonly version: string; readonly nodeVersion: string; readonly apiVersion: string },
): HubInfo {
  const { version, nodeVersion, apiVersion } = program;
  return {
    version,
    apiVersion,
    nodeVersion,
    spawner: spawners[0]?.class ?? '',
    spawners: spawners.map(({ name, class: className }) => ({ name, class: className })),
    authenticators: authenticators.map(({ name, class: className }) => ({
      name,
      class: className,
    })),
  };
}
