import { hashSecret } from '../../../platform/crypto/hash.ts';

/** The API tokens of the configuration's services, known in memory only, or to the instance that runs one. */
export interface ServiceTokens {
  /** Sets the token of a service; one it had before ends. Announce the change afterwards. */
  set(serviceName: string, token: string): void;
  /** The same for a token that only the instance knows that runs the service. */
  setHash(serviceName: string, tokenHash: string): void;
  delete(serviceName: string): void;
  /** The service that a token, given as its hash, belongs to. */
  findService(tokenHash: string): string | undefined;
}

/**
 * Keyed by hash, so that the time a look-up takes tells nothing
 * about the tokens in it.
 */
export function createServiceTokens(): ServiceTokens {
  const serviceByHash = new Map<string, string>();
  const hashByService = new Map<string, string>();

  const remove = (serviceName: string) => {
    const tokenHash = hashByService.get(serviceName);
    if (tokenHash === undefined) return;
    hashByService.delete(serviceName);
    serviceByHash.delete(tokenHash);
  };

  function setHash(serviceName: string, tokenHash: string): void {
    remove(serviceName);
    hashByService.set(serviceName, tokenHash);
    serviceByHash.set(tokenHash, serviceName);
  }

  return {
    set: (serviceName, token) => setHash(serviceName, hashSecret(token)),
    setHash,
    delete: remove,
    findService: (tokenHash) => serviceByHash.get(tokenHash),
  };
}
