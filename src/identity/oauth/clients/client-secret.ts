import { hashSecret } from '../../../platform/crypto/hash.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import type { ServiceTokens } from '../tokens/token-verifier.ts';
import type { Client } from './client.ts';

/** Whether a secret is the one of a client. */
export type VerifyClientSecret = (client: Client, secret: string) => Promise<boolean>;

/**
 * A service's secret is its API token, a server's secret is the
 * token it was started with. Secrets are compared as hashes, so time tells nothing about them.
 */
export function createClientSecretVerifier({
  serviceTokens,
  accessTokens,
}: {
  readonly serviceTokens: ServiceTokens;
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash'>;
}): VerifyClientSecret {
  return async ({ identity }, secret) => {
    const tokenHash = hashSecret(secret);
    if (identity.service !== undefined) {
      return serviceTokens.findService(tokenHash) === identity.service;
    }
    const server = (await accessTokens.findByHash(tokenHash))?.server;
    return (
      server !== undefined &&
      server.userName === identity.server?.userName &&
      server.serverName === identity.server.serverName
    );
  };
}
