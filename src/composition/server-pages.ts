import type Router from '@koa/router';
import { createSealer } from '../crypto/sealer.ts';
import type { OperationDeps } from '../operations/operations.ts';
import type { Perform } from '../operations/perform.ts';
import { createBoundPages, type Entrance } from '../pages/forms/bound-pages.ts';
import { preferenceRoutes } from '../pages/preference-routes.ts';
import { homeRoutes } from '../pages/servers/home-routes.ts';
import { jupyterHubRoutes } from '../pages/servers/jupyterhub-routes.ts';
import { openServerRoutes } from '../pages/servers/open-server-routes.ts';
import { serverPageRoutes } from '../pages/servers/server-page-routes.ts';
import { createFindServerTarget } from '../pages/servers/server-target.ts';
import { spawnRoutes } from '../pages/servers/spawn-routes.ts';
import { userUrlRoutes } from '../pages/servers/user-url-routes.ts';
import { createAccessibleServices } from '../pages/services/accessible-services.ts';
import { servicesRoutes } from '../pages/services/services-routes.ts';
import { acceptShareRoutes } from '../pages/sharing/accept-share-routes.ts';
import { shareRoutes } from '../pages/sharing/share-routes.ts';
import { createShownOnce } from '../pages/shown-once.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { ComposedLoads } from './compose-loads.ts';
import type { ComposedServers } from './compose-servers.ts';
import type { ComposedServices } from './compose-services.ts';
import type { ComposedSharing } from './compose-sharing.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

interface ServerPageDeps {
  readonly browser: Pick<ComposedBrowser, 'pages'>;
  readonly site: Site;
  readonly authorizer: Authorizer;
  readonly servers: ComposedServers;
}

/** The home page, and the pages on which servers are started, followed and stopped. */
export function addServerPages(
  router: Router,
  foundation: Foundation,
  deps: ServerPageDeps & {
    readonly perform: Perform<OperationDeps>;
    readonly entrances: Entrance[];
    readonly browser: Pick<ComposedBrowser, 'pages' | 'confirmLogin'>;
    readonly services: ComposedServices;
    readonly accounts: Pick<ComposedAccounts, 'acting' | 'firstRun'>;
    readonly gateway: Pick<ComposedGateway, 'access' | 'doorAnswers' | 'arrivals'>;
    readonly sharing: ComposedSharing;
    readonly loads: Pick<ComposedLoads, 'reader'>;
  },
): void {
  const { config } = foundation;
  const shared = routeDepsOf(foundation, deps);
  const { sharing } = deps.sharing;
  const accessibleServices = createAccessibleServices({
    pages: shared.pages,
    authorizer: deps.authorizer,
    registry: deps.services.registry,
  });
  servicesRoutes(router, { pages: shared.pages, accessibleServices });
  const showHome = homeRoutes(router, {
    ...shared,
    config,
    sharing,
    firstRun: deps.accounts.firstRun,
    accessibleServices,
    loads: deps.loads.reader,
  });
  const { acting } = deps.accounts;
  const findTarget = createFindServerTarget({ ...shared, acting });
  spawnRoutes(router, { ...shared, showHome, findTarget });
  serverPageRoutes(router, {
    ...shared,
    config,
    findTarget,
    loads: deps.loads.reader,
  });
  const bound = createBoundPages(router, { ...deps, ...deps.browser });
  shareRoutes(bound, createShownOnce(createSealer(foundation.secrets, 'shown-once'), 'share-link'));
  acceptShareRoutes(router, bound);
  openServerRoutes(router, {
    pages: shared.pages,
    routes: deps.services.routes,
    access: deps.gateway.access,
    doorAnswers: deps.gateway.doorAnswers,
    arrivals: deps.gateway.arrivals,
  });
  preferenceRoutes(router, {
    pages: shared.pages,
    basePath: config.basePath,
    publicUrl: config.publicUrl,
  });
  if (deps.site.jupyterHub.hasAddresses) jupyterHubRoutes(router, deps.site);
}

/** The pages outside `/hub/`: the base URL, and the addresses of servers that do not run. */
export function addOuterPages(
  router: Router,
  foundation: Foundation,
  deps: ServerPageDeps & { readonly browser: Pick<ComposedBrowser, 'landing'> },
): void {
  const { basePath } = foundation.config;
  const { hub } = deps.site.urls;
  router.get([basePath, hub, hub.slice(0, -1)], deps.browser.landing.middleware);
  userUrlRoutes(router, { ...routeDepsOf(foundation, deps), basePath });
}

function routeDepsOf(
  { config, stores }: Foundation,
  { browser, site, authorizer, servers }: ServerPageDeps,
) {
  return {
    pages: browser.pages,
    apiPath: site.apiPath,
    authorizer,
    users: stores.users,
    store: stores.servers,
    startTimes: stores.startTimes,
    serverOutput: servers.output,
    servers: servers.servers,
    lifecycle: servers.lifecycle,
    progressElsewhere: servers.progressElsewhere,
    implicitSpawnSeconds: config.Hub.implicit_spawn_seconds,
  };
}
