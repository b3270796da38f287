import { createClientAuthentication } from '../identity/oauth/clients/client-authentication.ts';
import { createClientRegistry } from '../identity/oauth/clients/client-registry.ts';
import { createClientSecretVerifier } from '../identity/oauth/clients/client-secret.ts';
import { createFailureLimit, type FailureWindow } from '../identity/oauth/clients/failure-limit.ts';
import { createCodeExchange } from '../identity/oauth/grants/code-exchange.ts';
import { createTokenIssuer } from '../identity/oauth/tokens/token-issuer.ts';
import { createTokenVerifier } from '../identity/oauth/tokens/token-verifier.ts';
import { createUseRecorder } from '../identity/oauth/tokens/use-recorder.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { hashSecret } from '../platform/crypto/hash.ts';
import { serviceTitle } from '../platform/protocol/service-title.ts';
import { createServerClients } from '../workloads/servers/server-clients.ts';
import type { ComposedServices } from './compose-services.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';
import { gatewayTokens } from './gateway-settings.ts';

/** The authorization server without its endpoints. */
export type ComposedOAuth = ReturnType<typeof composeOAuth>;

export function composeOAuth(
  { config, secrets, database, keyv, stores, metrics, log, disposables }: Foundation,
  deps: {
    readonly authorizer: Authorizer;
    readonly services: ComposedServices;
    readonly site: Site;
  },
) {
  const { authorizer } = deps;
  const { registry, tokens: serviceTokens } = deps.services;
  const { Hub, Spawner, basePath } = config;
  const { accessTokens } = stores;
  const gatewayTokenHashes = new Set(
    gatewayTokens(secrets).map((token) => hashSecret(token.reveal())),
  );
  const clients = createClientRegistry({
    services: () => registry.services(),
    originOf: deps.site.origins.of,
    servers: createServerClients({
      users: stores.users,
      servers: stores.servers,
      basePath,
      allowedScopes: Spawner.oauth_client_allowed_scopes,
    }),
  });
  const useRecorder = disposables.use(createUseRecorder({ accessTokens, log }));
  const tokenVerifier = disposables.use(
    createTokenVerifier({
      accessTokens,
      serviceTokens,
      isGatewayToken: (tokenHash) => gatewayTokenHashes.has(tokenHash),
      users: stores.users,
      clients,
      authorizer,
      database,
      useRecorder,
    }),
  );
  const verifyClientSecret = createClientSecretVerifier({ serviceTokens, accessTokens });
  return {
    clients,
    titleOfService: (name: string) => {
      const service = registry.services().find((candidate) => candidate.name === name);
      return service && serviceTitle(service);
    },
    tokenVerifier,
    clientAuthentication: createClientAuthentication({
      clients,
      verifyClientSecret,
      failureLimit: createFailureLimit({
        counts: keyv.space<FailureWindow>('client-failures'),
        now: database.now,
      }),
      clientAddress: deps.site.clientAddress,
    }),
    tokenIssuer: createTokenIssuer({
      now: database.now,
      accessTokens,
      authorizer,
      settings: Hub,
    }),
    exchangeCode: createCodeExchange({
      now: database.now,
      authorizationCodes: stores.authorizationCodes,
      tokenLifetimeSeconds: Hub.oauth_token_expires_in ?? config.loginLifetimeSeconds,
      countGrant: metrics.countGrant,
      log,
    }),
  };
}
