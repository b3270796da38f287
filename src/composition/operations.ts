import type Router from '@koa/router';
import { addOperations } from '../entrances/api/add-operations.ts';
import { createOpenApiDocument } from '../entrances/api/openapi.ts';
import { loginRequestOf } from '../entrances/pages/login/login-request.ts';
import { cacheRoleNames } from '../identity/rbac/cached-role-names.ts';
import { createCachedPages } from '../operations/cached-pages.ts';
import type { HubInfo } from '../operations/info.ts';
import { type OperationDeps, operations } from '../operations/operations.ts';
import { createOutputFollowers } from '../operations/output.ts';
import { createPerform } from '../operations/perform.ts';
import { commandChannelOperation, createCommandEntrance } from '../operations/perform-command.ts';
import { presentServer } from '../operations/server-model.ts';
import { createUserDirectory } from '../operations/user-model.ts';
import { hostPrefix, loginCookie } from '../platform/protocol/cookie-names.ts';
import { JsonText } from '../platform/protocol/json-text.ts';
import { watchChanges } from '../platform/store/change-aware-cache.ts';
import type { Server } from '../workloads/servers/server.ts';
import { createServerCountStore } from '../workloads/servers/server-count-store.ts';
import type { Visited } from './browser.ts';
import type { Foundation } from './foundation.ts';

/** The whole record. */
export type Whole = Visited & ReturnType<typeof openOperations>;

/** What performs the operations, for every entrance. */
export function openOperations(hub: Visited) {
  const { apiPath, audit, catalogue, config, database, origins, roles, servers } = hub;

  const changes = hub.disposables.use(watchChanges(database));
  const userDirectory = createUserDirectory({
    ...hub,
    changes,
    async serverModelsByUser(userIds, { withStopped, withUserOptions }) {
      const byUser = await hub.serverStore.listByUser(userIds, { withStopped });
      const modelsOf = (listed: readonly Server[]) =>
        listed.map((each) => [
          each.name,
          presentServer(each, {
            prefix: servers.prefixOf(each),
            apiPath,
            origins,
            withState: true,
            withUserOptions,
          }),
        ]);
      return new Map(
        [...byUser].map(([userId, listed]) => [userId, Object.fromEntries(modelsOf(listed))]),
      );
    },
  });

  // Few hubs are ever asked for it.
  let description: ReturnType<OperationDeps['describe']> | undefined;
  function describe(): ReturnType<OperationDeps['describe']> {
    const loginCookieName = (origins.hasHostCookies ? hostPrefix : '') + loginCookie;
    return new JsonText(createOpenApiDocument({ ...hub, loginCookie: loginCookieName }));
  }
  const deps: OperationDeps = {
    ...hub,
    info: hubInfo(hub),
    describe: () => (description ??= describe()),
    requestStop: (request) => hub.stop.request(request),
    hubRoute: { prefix: config.basePath, target: new URL(config.Hub.hub_bind_url).origin },
    userDirectory,
    userPages: createCachedPages({ database, changes }),
    flushActivity: () => hub.activityLog.catchUp(),
    slowStartMs: config.Spawner.slow_start_timeout * 1000,
    slowStopMs: config.Spawner.slow_stop_timeout * 1000,
    findClient: (clientId) => hub.clients.find(clientId),
    roles: { ...roles, ...cacheRoleNames(roles, changes) },
    allowsManaged: config.Hub.allow_managed_services_at_runtime,
    outputFollowers: createOutputFollowers(),
    spawnerConfig: config.Spawner,
    currency: config.Spawner.prices.currency,
    serverCounts: createServerCountStore(database),
  };
  const perform = createPerform(deps, hub);
  const entrance = createCommandEntrance({ perform, catalogue, audit, isHub: true });
  hub.channel.handle(commandChannelOperation, entrance);
  return { perform };
}

/** Adds every operation of the REST API. */
export function addApi(
  router: Router,
  hub: Pick<
    Whole,
    'config' | 'perform' | 'liveCallers' | 'passwordCallers' | 'confirmLogin' | 'origins'
  >,
): void {
  const { Hub, Proxy: proxyConfig } = hub.config;
  addOperations(router, operations, {
    ...hub,
    identifyByPassword: (ctx, fields, authenticatorName) =>
      hub.passwordCallers.identify(fields, loginRequestOf(ctx), authenticatorName),
    requireRecentLogin: (ctx) => hub.confirmLogin.require(ctx),
    publicOrigin: hub.origins.hub,
    bodyLimitBytes: proxyConfig.api_body_size,
    pageLimits: { default: Hub.api_page_default_limit, max: Hub.api_page_max_limit },
  });
}

/** What `GET /hub/api/info` says of the program. */
function hubInfo({ config, version, nodeVersion, jupyterHub }: Foundation): HubInfo {
  const { spawners, authenticators } = config;
  return {
    version,
    apiVersion: jupyterHub.apiVersion,
    nodeVersion,
    spawner: spawners[0]?.class ?? '',
    spawners: spawners.map(({ name, class: className }) => ({ name, class: className })),
    authenticators: authenticators.map(({ name, class: className }) => ({
      name,
      class: className,
    })),
  };
}
