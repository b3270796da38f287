import type Router from '@koa/router';
import { activityRoutes } from '../api/activity.ts';
import { assertionKeyRoutes } from '../api/assertion-keys.ts';
import { groupRoutes } from '../api/groups.ts';
import { type HubInfo, infoRoutes } from '../api/info.ts';
import { invitationRoutes } from '../api/invitations.ts';
import { lockoutRoutes } from '../api/lockouts.ts';
import { createOpenApiDocument, openApiRoutes } from '../api/openapi.ts';
import { proxyRoutes } from '../api/routes.ts';
import { serverRoutes } from '../api/servers.ts';
import { serviceRoutes } from '../api/services.ts';
import { sessionRoutes } from '../api/sessions.ts';
import { type StopRequest, shutdownRoutes } from '../api/shutdown.ts';
import { tokenRoutes } from '../api/tokens.ts';
import { createUserDirectory } from '../api/user-directory.ts';
import { userRoutes } from '../api/users.ts';
import type { Config } from '../config/config.ts';
import type { AssertionSigner } from '../gateway/assertion.ts';
import { presentServer } from '../servers/server-model.ts';
import { invitationUrl } from './account-pages.ts';
import type { HubParts } from './hub-parts.ts';

/** Adds every resource of the REST API. */
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
  const bodyLimitBytes = config.Proxy.api_body_size;
  const publicOrigin = config.publicUrl.origin;
  const shared = { users, authority, bodyLimitBytes };

  const directory = createUserDirectory({
    groups,
    roles,
    async serverModelsOf(userName) {
      const servers = await stores.servers.listOfUser(userName);
      return Object.fromEntries(
        servers.map((each) => [
          each.name,
          presentServer(each, {
            prefix: server.servers.prefixOf(each),
            apiPath,
            publicOrigin,
            withState: true,
          }),
        ]),
      );
    },
  });

  infoRoutes(router, {
    info,
    authority,
    directory,
    async roleNamesOfService(name) {
      const isAdmin = registry.find(name)?.isAdmin ?? false;
      return (await roles.heldBy({ kind: 'service', name, isAdmin })).map((role) => role.name);
    },
    isAdminService: (name) => registry.find(name)?.isAdmin ?? false,
  });
  userRoutes(router, {
    ...shared,
    accounts: deps.accounts,
    directory,
    catchUpActivity: () => server.activityLog.catchUp(),
    publicOrigin,
  });
  activityRoutes(router, { ...shared, store: stores.servers, activityLog: server.activityLog });
  serverRoutes(router, {
    ...shared,
    store: stores.servers,
    servers: server.servers,
    lifecycle: server.lifecycle,
    apiPath,
    publicOrigin,
  });
  tokenRoutes(router, { ...shared, accessTokens, tokenIssuer: deps.oauth.tokenIssuer, roles });
  sessionRoutes(router, { users, logins: deps.logins, authority });
  groupRoutes(router, {
    groups,
    members: deps.account.groupMembers,
    roles,
    authority,
    publicOrigin,
    bodyLimitBytes,
  });
  lockoutRoutes(router, { lockouts: deps.account.lockouts, authority });
  invitationRoutes(router, {
    invitations: deps.account.invitations,
    authority,
    invitationUrl: (secret) => invitationUrl(deps, config, secret),
  });
  serviceRoutes(router, { registry, roles, authority });
  assertionKeyRoutes(router, assertions);
  shutdownRoutes(router, { authority, requestStop, bodyLimitBytes });
  proxyRoutes(router, { routes: deps.routes, authority });
  openApiRoutes(
    router,
    createOpenApiDocument({ version: info.version, publicUrl: config.publicUrl }),
  );
}
