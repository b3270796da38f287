import { hashSecret } from '../../../platform/crypto/hash.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import type { ImportedTokenStore } from '../tokens/imported-token-store.ts';
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
  importedTokens,
}: {
  readonly serviceTokens: ServiceTokens;
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash'>;
  readonly importedTokens: ImportedTokenStore;
}): VerifyClientSecret {
  return async ({ identity }, secret) => {
    const tokenHash = hashSecret(secret);
    if (identity.service !== undefined) {
      if (serviceTokens.findService(tokenHash) === identity.service) return true;
      // At its first use; this hub learns of it from the database a moment later.
      await importedTokens.adopt(secret, tokenHash);
      return await importedTokens.isOfService(tokenHash, identity.service);
    }
    const server = (await accessTokens.findByHash(tokenHash))?.server;
    return (
      server !== undefined &&
      server.userName === identity.server?.userName &&
      server.serverName === identity.server.serverName
    );
  };
}
