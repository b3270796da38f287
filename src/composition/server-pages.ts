import type Router from '@koa/router';
import type { Entrance } from '../entrances/pages/forms/binding.ts';
import { createBoundPages } from '../entrances/pages/forms/bound-pages.ts';
import { preferenceRoutes } from '../entrances/pages/preference-routes.ts';
import { homeRoutes } from '../entrances/pages/servers/home-routes.ts';
import { jupyterHubRoutes } from '../entrances/pages/servers/jupyterhub-routes.ts';
import { openServerRoutes } from '../entrances/pages/servers/open-server-routes.ts';
import { serverPageRoutes } from '../entrances/pages/servers/server-page-routes.ts';
import { spawnRoutes } from '../entrances/pages/servers/spawn-routes.ts';
import { stoppedServerRoutes, userUrlRoutes } from '../entrances/pages/servers/user-url-routes.ts';
import { servicesRoutes } from '../entrances/pages/services/services-routes.ts';
import { acceptShareRoutes } from '../entrances/pages/sharing/accept-share-routes.ts';
import { shareRoutes } from '../entrances/pages/sharing/share-routes.ts';
import { createShownOnce } from '../entrances/pages/shown-once.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { OperationDeps } from '../operations/operations.ts';
import type { Perform } from '../operations/perform.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Working } from './servers.ts';
import type { Site } from './site.ts';

/** The home page, and the pages on which servers are started, followed and stopped. */
export function addServerPages(
  router: Router,
  foundation: Foundation,
  deps: {
    readonly perform: Perform<OperationDeps>;
    readonly entrances: Entrance[];
    readonly authorizer: Authorizer;
    readonly browser: Pick<ComposedBrowser, 'pages' | 'confirmLogin'>;
    readonly site: Site;
    readonly servers: Pick<Working, 'servers'>;
    readonly services: Pick<Identity, 'routes'>;
    readonly gateway: Pick<ComposedGateway, 'access' | 'consentCookies' | 'crossOriginLogin'>;
  },
): void {
  const { config, stores, secrets } = foundation;
  const { servers } = deps.servers;
  const bound = createBoundPages(router, { ...deps, ...deps.browser });
  const shared = {
    servers,
    store: stores.serverStore,
    apiPath: deps.site.apiPath,
    basePath: config.basePath,
    implicitSpawnSeconds: config.Hub.implicit_spawn_seconds,
  };
  servicesRoutes(bound);
  homeRoutes(bound, { config, servers });
  spawnRoutes(bound, shared);
  serverPageRoutes(bound, shared);
  stoppedServerRoutes(bound, shared);
  shareRoutes(bound, createShownOnce(createSealer(secrets, 'shown-once'), 'share-link'));
  acceptShareRoutes(router, bound);
  openServerRoutes(router, { ...deps.gateway, pages: bound.pages, routes: deps.services.routes });
  preferenceRoutes(router, {
    pages: bound.pages,
    basePath: config.basePath,
    publicUrl: config.publicUrl,
  });
  if (deps.site.jupyterHub.hasAddresses) jupyterHubRoutes(router, deps.site);
}

/** The pages outside `/hub/`: the base URL, and the addresses of servers that do not run. */
export function addOuterPages(
  router: Router,
  foundation: Foundation,
  deps: {
    readonly browser: Pick<ComposedBrowser, 'pages' | 'landing'>;
    readonly site: Pick<Site, 'urls'>;
    readonly servers: Pick<Working, 'servers' | 'lifecycle'>;
  },
): void {
  const { basePath } = foundation.config;
  const { hub } = deps.site.urls;
  router.get([basePath, hub, hub.slice(0, -1)], deps.browser.landing.middleware);
  userUrlRoutes(router, {
    ...deps.servers,
    pages: deps.browser.pages,
    basePath,
    store: foundation.stores.serverStore,
  });
}
