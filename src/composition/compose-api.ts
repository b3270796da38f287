import type Router from '@koa/router';
import { addOperations } from '../api/add-operations.ts';
import type { HubInfo } from '../api/info.ts';
import { createOpenApiDocument } from '../api/openapi.ts';
import { type ApiDeps, operations } from '../api/operations.ts';
import type { StopRequest } from '../api/shutdown.ts';
import { createUserDirectory } from '../api/user-directory.ts';
import type { Config } from '../config/config.ts';
import type { AssertionSigner } from '../gateway/assertion.ts';
import { rememberRoleNames } from '../rbac/remembered-role-names.ts';
import type { Server } from '../servers/server.ts';
import { presentServer } from '../servers/server-model.ts';
import { watchChanges } from '../store/change-aware-cache.ts';
import type { HubParts } from './hub-parts.ts';

/** Adds every operation of the REST API. */
export function addApi(
  router: Router,
  deps: HubParts,
  config: Config,
  {
    info,
    assertions,
    requestStop,
  }: {
    readonly info: HubInfo;
    readonly assertions: AssertionSigner;
    readonly requestStop: (request: StopRequest) => void;
  },
): void {
  const { stores, authority, server, registry, apiPath } = deps;
  const { users, groups, roles, accessTokens } = stores;
  const publicOrigin = config.publicUrl.origin;

  const changes = watchChanges(deps.database);
  const directory = createUserDirectory({
    groups,
    roles,
    changes,
    async serverModelsByUser(userIds, options) {
      const servers = await stores.servers.listByUser(userIds, options);
      const modelsOf = (listed: readonly Server[]) =>
        listed.map((each) => [
          each.name,
          presentServer(each, {
            prefix: server.servers.prefixOf(each),
            apiPath,
            publicOrigin,
            withState: true,
          }),
        ]);
      return new Map(
        [...servers].map(([userId, listed]) => [userId, Object.fromEntries(modelsOf(listed))]),
      );
    },
  });

  const apiDeps: ApiDeps = {
    info,
    description: createOpenApiDocument({ version: info.version, publicUrl: config.publicUrl }),
    authority,
    assertions,
    requestStop,
    routes: deps.routes,
    hubRoute: { prefix: config.basePath, target: new URL(config.Hub.hub_bind_url).origin },
    directory,
    users,
    accounts: deps.accounts,
    catchUpActivity: () => server.activityLog.catchUp(),
    activityLog: server.activityLog,
    serverStore: stores.servers,
    servers: server.servers,
    lifecycle: server.lifecycle,
    apiPath,
    publicOrigin,
    slowStartMs: config.Spawner.slow_start_timeout * 1000,
    slowStopMs: config.Spawner.slow_stop_timeout * 1000,
    accessTokens,
    tokenIssuer: deps.oauth.tokenIssuer,
    logins: deps.logins,
    invitations: deps.account.invitations,
    lockouts: deps.account.lockouts,
    groups,
    groupMembers: deps.account.groupMembers,
    roles: { ...roles, ...rememberRoleNames(roles, changes) },
    registry,
  };
  addOperations(router, operations, apiDeps, {
    authority,
    publicOrigin,
    bodyLimitBytes: config.Proxy.api_body_size,
    pageLimits: { default: config.Hub.api_page_default_limit, max: config.Hub.api_page_max_limit },
  });
}
