import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { ClientAddressReader } from '../http/client-address.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { createClientAuthentication } from '../oauth/clients/client-authentication.ts';
import { createClientRegistry } from '../oauth/clients/client-registry.ts';
import { createClientSecretVerifier } from '../oauth/clients/client-secret.ts';
import { createFailureLimit } from '../oauth/clients/failure-limit.ts';
import { createCodeExchange } from '../oauth/grants/code-exchange.ts';
import type { ServiceTokens } from '../oauth/tokens/service-tokens.ts';
import { createTokenIssuer } from '../oauth/tokens/token-issuer.ts';
import { createTokenVerifier } from '../oauth/tokens/token-verifier.ts';
import { createUseRecorder } from '../oauth/tokens/use-recorder.ts';
import type { Authority } from '../rbac/authority.ts';
import { serverPrefix } from '../servers/server.ts';
import type { Service } from '../services/service.ts';
import type { HubDatabase } from '../store/database.ts';
import type { Stores } from './stores.ts';

/** The authorization server without its endpoints. */
export type ComposedOAuth = ReturnType<typeof composeOAuth>;

/** Creates the clients, the tokens and the exchange of codes. */
export function composeOAuth(
  deps: {
    readonly config: Config;
    readonly stores: Stores;
    readonly database: HubDatabase;
    readonly authority: Authority;
    readonly services: () => readonly Service[];
    readonly serviceTokens: ServiceTokens;
    readonly clientAddress: ClientAddressReader;
    readonly metrics: Metrics;
    readonly log: Logger;
  },
  disposables: AsyncDisposableStack,
) {
  const { config, stores, database, authority, services, serviceTokens, metrics, log } = deps;
  const { Hub, Spawner, basePath, publicUrl } = config;
  const { accessTokens } = stores;
  const clients = createClientRegistry({
    services,
    servers: {
      isUser: async (userName) => (await stores.users.findByName(userName)) !== undefined,
      async find(userName, serverName) {
        const server = await stores.servers.find(userName, serverName);
        if (server === undefined) return undefined;
        return { prefix: serverPrefix(basePath, userName, serverName) };
      },
      allowedScopes: Spawner.oauth_client_allowed_scopes,
    },
  });
  const useRecorder = disposables.use(createUseRecorder({ accessTokens, log }));
  const tokenVerifier = disposables.use(
    createTokenVerifier({
      accessTokens,
      serviceTokens,
      users: stores.users,
      clients,
      authority,
      database,
      useRecorder,
    }),
  );
  const verifyClientSecret = createClientSecretVerifier({ serviceTokens, accessTokens });
  return {
    clients,
    tokenVerifier,
    clientAuthentication: createClientAuthentication({
      clients,
      verifyClientSecret,
      failureLimit: createFailureLimit({}),
      clientAddress: deps.clientAddress,
    }),
    tokenIssuer: createTokenIssuer({
      accessTokens,
      authority,
      maxLifetimeSeconds: Hub.token_expires_in_max_seconds,
    }),
    exchangeCode: createCodeExchange({
      authorizationCodes: stores.authorizationCodes,
      publicUrl,
      tokenLifetimeSeconds: Hub.oauth_token_expires_in ?? config.loginLifetimeSeconds,
      countGrant: metrics.countGrant,
      log,
    }),
  };
}
