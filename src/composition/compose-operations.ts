import type Router from '@koa/router';
import { addOperations } from '../entrances/api/add-operations.ts';
import type { LiveCallers } from '../entrances/api/live-callers.ts';
import { createOpenApiDocument } from '../entrances/api/openapi.ts';
import { loginRequestOf } from '../entrances/pages/login/login-request.ts';
import { createAuthStates } from '../identity/accounts/auth-states.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { cacheRoleNames } from '../identity/rbac/cached-role-names.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import { createCachedPages } from '../operations/cached-pages.ts';
import type { HubInfo } from '../operations/info.ts';
import { JsonText } from '../operations/operation.ts';
import { type OperationDeps, operations } from '../operations/operations.ts';
import { createOutputFollowers } from '../operations/output.ts';
import { createPerform, type Perform } from '../operations/perform.ts';
import { commandChannelOperation, createCommandEntrance } from '../operations/perform-command.ts';
import { createUserDirectory } from '../operations/user-directory.ts';
import { versionOf } from '../platform/crypto/version.ts';
import { hostPrefix, loginCookie } from '../platform/protocol/cookie-names.ts';
import { watchChanges } from '../platform/store/change-aware-cache.ts';
import type { Server } from '../workloads/servers/server.ts';
import { presentServer } from '../workloads/servers/server-model.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { ComposedGateways } from './compose-gateways.ts';
import type { ComposedSharing } from './compose-sharing.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Working } from './servers.ts';
import type { Site } from './site.ts';
import type { StopRequest } from './stop-request.ts';

/** What performs the operations, for every entrance. */
export function composeOperations(
  { config, database, stores, disposables, log }: Foundation,
  deps: {
    readonly site: Site;
    readonly authorizer: Authorizer;
    readonly oauth: Identity;
    readonly login: Identity;
    readonly logins: LoginSessions;
    readonly accounts: ComposedAccounts;
    readonly servers: Working;
    readonly services: Identity;
    readonly instances: Identity;
    readonly loads: Pick<Working, 'loads'>;
    readonly gateway: Pick<ComposedGateway, 'assertions' | 'liveConnections'>;
    readonly stop: StopRequest;
    readonly info: HubInfo;
    readonly gateways: ComposedGateways;
    readonly sharing: ComposedSharing;
  },
): Perform<OperationDeps> {
  const { authorizer, info, servers, services } = deps;
  const { apiPath, origins } = deps.site;
  const { registry, routes } = services;
  const {
    accounts,
    acting,
    invitations,
    lockouts,
    groupMembers,
    roleAdministration,
    serviceAdministration,
  } = deps.accounts;
  const { users, groups, roles, accessTokens } = stores;

  const changes = disposables.use(watchChanges(database));
  const directory = createUserDirectory({
    groups,
    roles,
    userInfo: stores.userInfo,
    changes,
    async serverModelsByUser(userIds, { withStopped, withUserOptions }) {
      const byUser = await stores.serverStore.listByUser(userIds, { withStopped });
      const modelsOf = (listed: readonly Server[]) =>
        listed.map((each) => [
          each.name,
          presentServer(each, {
            prefix: servers.servers.prefixOf(each),
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
    const { version } = info;
    const { publicUrl } = config;
    const document = createOpenApiDocument({ version, publicUrl, loginCookie: loginCookieName });
    return { document: new JsonText(document), version: versionOf(document) };
  }
  const operationDeps: OperationDeps = {
    info,
    describe: () => (description ??= describe()),
    authorizer,
    ...deps.gateway,
    requestStop: (request) => deps.stop.request(request),
    audit: database.audit,
    auditLog: stores.auditLog,
    routes,
    hubRoute: { prefix: config.basePath, target: new URL(config.Hub.hub_bind_url).origin },
    directory,
    userPages: createCachedPages({ database, changes }),
    users,
    userInfo: stores.userInfo,
    accounts,
    userProfiles: deps.accounts.userProfiles,
    passwords: deps.accounts.passwords,
    setUpLink: deps.accounts.setUpLink,
    userNames: deps.login.userNames,
    binding: deps.login.binding,
    passkeys: deps.accounts.passkeys,
    identityLinks: deps.accounts.identityLinks,
    passwordHasher: deps.login.passwordHasher,
    throttle: deps.login.throttle,
    batches: deps.accounts.batches,
    notices: stores.notices,
    now: database.now,
    authStates: createAuthStates({
      identities: stores.identities,
      acting,
      keepsAuthState: config.Authenticator.enable_auth_state,
      audit: database.audit,
    }),
    flushActivity: () => servers.activityLog.catchUp(),
    activityLog: servers.activityLog,
    serverStore: stores.serverStore,
    servers: servers.servers,
    lifecycle: servers.lifecycle,
    reportedAddresses: servers.reportedAddresses,
    remoteProgress: servers.remoteProgress,
    apiPath,
    origins,
    slowStartMs: config.Spawner.slow_start_timeout * 1000,
    slowStopMs: config.Spawner.slow_stop_timeout * 1000,
    accessTokens,
    tokenIssuer: deps.oauth.tokenIssuer,
    logins: deps.logins,
    identities: stores.identities,
    authenticators: deps.login.authenticators,
    credentials: stores.credentials,
    secondFactors: deps.accounts.secondFactors,
    invitationStore: stores.invitationStore,
    findClient: (clientId) => deps.oauth.clients.find(clientId),
    titleOfService: deps.oauth.titleOfService,
    serviceNames: () => registry.services().map(({ name }) => name),
    invitations,
    lockouts,
    groups,
    groupPages: stores.groupPages,
    groupMembers,
    roleAdministration,
    acting,
    configuredRights: deps.accounts.configuredRights,
    catalogue: authorizer.catalogue,
    serviceAdministration,
    roles: { ...roles, ...cacheRoleNames(roles, changes) },
    registry,
    allowsManaged: config.Hub.allow_managed_services_at_runtime,
    outputFollowers: createOutputFollowers(),
    languages: deps.site.languages,
    ...deps.sharing,
    ...deps.gateways.api,
    instances: deps.instances.overview,
    instanceNames: deps.instances.directory,
    loads: deps.loads.loads,
    serverOutput: servers.serverOutput,
    startTimes: stores.startTimes,
    spawnerConfig: config.Spawner,
    firstRun: deps.accounts.firstRun,
  };
  const perform = createPerform(operationDeps, { authorizer, users, acting, log });
  const { catalogue } = authorizer;
  const { audit } = database;
  deps.instances.channel.handle(
    commandChannelOperation,
    createCommandEntrance({ perform, catalogue, audit }),
  );
  return perform;
}

/** Adds every operation of the REST API. */
export function addApi(
  router: Router,
  { config }: Pick<Foundation, 'config'>,
  deps: {
    readonly perform: Perform<OperationDeps>;
    readonly site: Pick<Site, 'origins'>;
    readonly browser: Pick<ComposedBrowser, 'confirmLogin'>;
    readonly accounts: Pick<ComposedAccounts, 'passwordCallers'>;
    readonly liveCallers: LiveCallers;
  },
): void {
  addOperations(router, operations, {
    perform: deps.perform,
    identifyByPassword: (ctx, fields, authenticatorName) =>
      deps.accounts.passwordCallers.identify(fields, loginRequestOf(ctx), authenticatorName),
    requireRecentLogin: (ctx) => deps.browser.confirmLogin.require(ctx),
    liveCallers: deps.liveCallers,
    publicOrigin: deps.site.origins.hub,
    bodyLimitBytes: config.Proxy.api_body_size,
    pageLimits: { default: config.Hub.api_page_default_limit, max: config.Hub.api_page_max_limit },
  });
}
