import { loadDirectory } from '../identity/accounts/load-directory.ts';
import { createAccountBinding } from '../identity/authentication/account-binding.ts';
import { createAdmissionRules } from '../identity/authentication/admission-rules.ts';
import { createAuthorizationRequestStates } from '../identity/authentication/authorization-request-states.ts';
import { createAuthenticators } from '../identity/authentication/create-authenticators.ts';
import { createExternalLogins } from '../identity/authentication/external-logins.ts';
import { createIdentityLinking } from '../identity/authentication/identity-linking.ts';
import { createLoginService } from '../identity/authentication/login-service.ts';
import { createLoginThrottles, networkOf } from '../identity/authentication/login-throttle.ts';
import { createPasswordHasher } from '../identity/authentication/password-hash.ts';
import { createProfileSync } from '../identity/authentication/profile-sync.ts';
import { createReloadableLogin } from '../identity/authentication/reloadable-login.ts';
import { createSealedSettings } from '../identity/authentication/sealed-settings.ts';
import { createSpawnHooks } from '../identity/authentication/spawn-hooks.ts';
import { createUpstreamLogout } from '../identity/authentication/upstream-logout.ts';
import { createUserNameRules } from '../identity/authentication/user-name-rules.ts';
import {
  createLoginRevalidation,
  createUserRefresh,
  providerTimeoutMs,
} from '../identity/authentication/user-refresh.ts';
import { createClientAssertionVerifier } from '../identity/oauth/clients/client-assertion.ts';
import { createClientAuthentication } from '../identity/oauth/clients/client-authentication.ts';
import { createClientDocuments } from '../identity/oauth/clients/client-documents.ts';
import { createClientRegistry } from '../identity/oauth/clients/client-registry.ts';
import { createClientSecretVerifier } from '../identity/oauth/clients/client-secret.ts';
import { commandLineClient } from '../identity/oauth/clients/command-line-client.ts';
import { createFailureLimit, type FailureWindow } from '../identity/oauth/clients/failure-limit.ts';
import { createDeviceVerification } from '../identity/oauth/endpoints/device-verification.ts';
import { assertionAudiences, issuerOf } from '../identity/oauth/endpoints/metadata-endpoint.ts';
import { createKeepOpen } from '../identity/oauth/endpoints/open-requests.ts';
import { createPushedRequests } from '../identity/oauth/endpoints/pushed-requests.ts';
import { createClientCredentialsGrant } from '../identity/oauth/grants/client-credentials-grant.ts';
import { createCodeExchange } from '../identity/oauth/grants/code-exchange.ts';
import {
  createDeviceGrant,
  createDeviceRequests,
  type DeviceRequest,
  deviceCodeSeconds,
} from '../identity/oauth/grants/device-grant.ts';
import { createRefreshGrant } from '../identity/oauth/grants/refresh-grant.ts';
import { createTokenExchangeGrant } from '../identity/oauth/grants/token-exchange-grant.ts';
import { startLogoutDeliveries } from '../identity/oauth/logout/logout-deliveries.ts';
import { createLogoutRequestReader } from '../identity/oauth/logout/logout-request.ts';
import { createUserClaims } from '../identity/oauth/openid/claims.ts';
import { createIdTokens, createSessionIdOf } from '../identity/oauth/openid/id-token.ts';
import { createTokenIssuer } from '../identity/oauth/tokens/token-issuer.ts';
import { createTokenVerifier } from '../identity/oauth/tokens/token-verifier.ts';
import { createUseRecorder } from '../identity/oauth/tokens/use-recorder.ts';
import { type Authorizer, createAuthorizer } from '../identity/rbac/authorizer.ts';
import { createScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import { createLoginSessions } from '../identity/sessions/login-sessions.ts';
import type { Config } from '../platform/config/config.ts';
import { createKeyedHash, hashSecret } from '../platform/crypto/hash.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { serviceTitle } from '../platform/protocol/service-title.ts';
import { createKeyvMutex } from '../platform/store/keyv-space.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import { createFindResource } from '../traffic/gateway/find-resource.ts';
import { gatewayTokens } from '../traffic/gateway/gateway-settings.ts';
import { createServerClients } from '../workloads/servers/server-clients.ts';
import { removeShadowedServices } from '../workloads/services/service-administration.ts';
import { openInstances } from './cluster.ts';
import type { Foundation } from './foundation.ts';
import { grow } from './grow.ts';
import { openServices } from './services.ts';

/** The record with all that knows users and programs, and lets them in. */
export type Identity = Awaited<ReturnType<typeof openIdentity>>;

/** The directory of the configuration comes first: instances and services find its groups and roles. */
export const openIdentity = (foundation: Foundation) =>
  grow(foundation)
    .with(async (hub) => {
      const { config, log, runtimeServiceStore } = hub;
      const catalogue = createScopeCatalogue(config.Hub.custom_scopes);
      await runtimeServiceStore.sealFormer();
      await removeShadowedServices(config.Hub.services, { store: runtimeServiceStore, log });
      await loadDirectory(config, { ...hub, catalogue });
      return { catalogue };
    })
    .with(openInstances)
    .with(openServices)
    .with((hub) => ({
      authorizer: createAuthorizer({
        ...hub,
        services: () =>
          hub.registry.services().map(({ name, isAdmin }) => ({ name, admin: isAdmin })),
      }),
      logins: hub.disposables.use(
        createLoginSessions({
          ...hub,
          store: hub.loginSessions,
          sealer: createSealer(hub.secrets, 'id-token'),
          lifetimeSeconds: hub.config.loginLifetimeSeconds,
          limitPerUser: hub.config.Hub.session_limit_per_user,
        }),
      ),
    }))
    .with(openOAuth)
    .with(openGrants)
    .with(openLogout)
    .with(openLogin)
    .with((hub) => ({ revalidation: createLoginRevalidation(hub) }))
    .with((hub) => ({
      spawnHooks: createSpawnHooks({
        ...hub,
        refreshesBeforeSpawn: hub.config.Authenticator.refresh_pre_spawn,
        refreshesBeforeStop: hub.config.Authenticator.refresh_pre_stop,
      }),
      endUpstreamLogins: createUpstreamLogout({
        ...hub,
        used: hub.keyv.space<true>('used-logout-tokens'),
      }),
    })).grown;

type WithServices = Foundation &
  Awaited<ReturnType<typeof openInstances>> &
  Awaited<ReturnType<typeof openServices>> & {
    readonly authorizer: Authorizer;
  };

/** The authorization server without its endpoints. */
function openOAuth(hub: WithServices) {
  const { config, registry, accessTokens, serviceTokens, database, users, log } = hub;
  const { Hub, Spawner } = config;
  const gatewayTokenHashes = new Set(
    gatewayTokens(hub.secrets).map((token) => hashSecret(token.reveal())),
  );
  const clientDocuments = createClientDocuments({
    hosts: Hub.client_documents,
    hubUrl: config.publicUrl,
    documents: hub.keyv.space('client-documents'),
    reads: createFailureLimit({
      counts: hub.keyv.space<FailureWindow>('client-document-reads'),
      now: hub.now,
      limit: 10,
    }),
    log,
  });
  const clients = createClientRegistry({
    agents: clientDocuments,
    services: () => registry.services(),
    originOf: hub.origins.of,
    commandLine: Hub.command_line_login ? commandLineClient : undefined,
    servers: createServerClients({
      ...hub,
      allowedScopes: Spawner.oauth_client_allowed_scopes,
    }),
  });
  const userClaims = createUserClaims(hub);
  const sessionIdOf = createSessionIdOf(createKeyedHash(hub.secrets, 'openid-session'));
  const useRecorder = hub.disposables.use(createUseRecorder({ accessTokens, log }));
  return {
    clients,
    clientDocuments,
    userClaims,
    sessionIdOf,
    findResource: createFindResource(hub),
    titleOfService: (name: string) => {
      const service = registry.find(name);
      return service && serviceTitle(service);
    },
    tokenVerifier: hub.disposables.use(
      createTokenVerifier({
        accessTokens,
        importedTokens: hub.importedTokens,
        serviceTokens,
        isGatewayToken: (tokenHash) => gatewayTokenHashes.has(tokenHash),
        users,
        clients,
        authorizer: hub.authorizer,
        database,
        useRecorder,
      }),
    ),
    clientAuthentication: createClientAuthentication({
      clients,
      verifyClientSecret: createClientSecretVerifier(hub),
      verifyClientAssertion: createClientAssertionVerifier({
        ...hub,
        audiences: assertionAudiences(hub.publicUrl),
        used: hub.keyv.space<true>('used-client-assertions'),
      }),
      failureLimit: createFailureLimit({
        counts: hub.keyv.space<FailureWindow>('client-failures'),
        now: hub.now,
      }),
      clientAddress: hub.clientAddress,
    }),
    tokenIssuer: createTokenIssuer({ ...hub, settings: Hub }),
    deviceRequests: createDeviceRequests({
      space: hub.keyv.space<DeviceRequest>('device-requests'),
      now: hub.now,
    }),
    exchangeCode: createCodeExchange({
      ...hub,
      issueIdToken: createIdTokens({
        ...hub,
        userClaims,
        issuer: issuerOf(hub.publicUrl),
        sessionIdOf,
      }),
      tokenLifetimeSeconds: Hub.oauth_token_expires_in ?? config.loginLifetimeSeconds,
      countGrant: hub.metrics.countGrant,
    }),
  };
}

/** Ways to tokens beside a code. */
function openGrants(hub: WithServices & ReturnType<typeof openOAuth>) {
  const limitOf = (space: string, limits = {}) =>
    createFailureLimit({
      counts: hub.keyv.space<FailureWindow>(space),
      now: hub.now,
      ...limits,
    });
  const openMs = deviceCodeSeconds * 1000;
  return {
    keepOpen: createKeepOpen({
      ofNetwork: limitOf('open-requests', { limit: 200, windowMs: openMs }),
      // More logins than one service has, each with a request of some kilobytes.
      ofClient: limitOf('open-requests-of-clients', { limit: 5_000, windowMs: openMs }),
      clientAddress: hub.clientAddress,
      networkOf,
    }),
    pushedRequests: createPushedRequests({ space: hub.keyv.space<string>('pushed-requests') }),
    deviceVerification: createDeviceVerification({
      ...hub,
      findRole: (name) => hub.roles.findByName(name),
      userCodeFailures: limitOf('user-code-failures'),
    }),
    answerGrants: {
      refresh_token: createRefreshGrant(hub),
      client_credentials: createClientCredentialsGrant(hub),
      'urn:ietf:params:oauth:grant-type:device_code': createDeviceGrant(hub),
      'urn:ietf:params:oauth:grant-type:token-exchange': createTokenExchangeGrant(hub),
    },
  };
}

/** Logouts that clients ask for, and those that they are told of. */
function openLogout(hub: WithServices & ReturnType<typeof openOAuth>) {
  const issuer = issuerOf(hub.publicUrl);
  hub.disposables.use(startLogoutDeliveries({ ...hub, issuer }));
  return { readLogoutRequest: createLogoutRequestReader({ ...hub, issuer }) };
}

/** What lets users in. */
async function openLogin(hub: Foundation) {
  const { config, secrets, settings, keyv, now, publicUrl, log } = hub;
  const sealer = createSealer(secrets, 'plugin-settings');
  const passwordHasher = createPasswordHasher(hub.passwordCost);
  const throttles = createLoginThrottles(config.Authenticator, hub);
  const runAlone = createKeyvMutex(keyv.space<string>('refreshes'), {
    lifetimeMs: providerTimeoutMs + 5_000,
  });

  async function createMethods(methods: Config, prepared: PreparedPlugins) {
    const { Authenticator } = methods;
    const binding = createAccountBinding(methods);
    const created = await createAuthenticators(prepared.authenticators, {
      ...hub,
      config: Authenticator,
      settingsOf: (name) => createSealedSettings(name, { settings, sealer }),
      passwordHasher,
    });
    const service = createLoginService({
      ...hub,
      config: Authenticator,
      authenticators: created,
      accounts: hub.accountStore,
      binding,
      throttle: throttles.login,
    });
    const rules = createAdmissionRules(Authenticator);
    const refresh = createUserRefresh({
      ...hub,
      runAlone,
      config: Authenticator,
      authenticators: created,
      rules,
      profiles: createProfileSync({ ...hub, config: Authenticator, rules }),
    });
    return {
      authenticators: created,
      binding,
      names: createUserNameRules(Authenticator),
      loginService: service,
      linkIdentity: createIdentityLinking({ ...hub, config: Authenticator }),
      refresh,
    };
  }

  const { names, reload, ...login } = hub.disposables.use(
    await createReloadableLogin(createMethods, hub, log),
  );
  return {
    ...login,
    userNames: names,
    reloadLogin: reload,
    throttles,
    throttle: throttles.login,
    passwordHasher,
    externalLogins: createExternalLogins({
      ...login,
      requestStates: createAuthorizationRequestStates({
        sealer: createSealer(secrets, 'authorization-request-state'),
        used: keyv.space<true>('used-login-states'),
        now,
        path: hub.urls.hub,
        isSecure: hub.isHttps,
      }),
      publicUrl,
      log,
    }),
  };
}
