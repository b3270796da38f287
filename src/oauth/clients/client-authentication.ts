import type { IncomingMessage } from 'node:http';
import { type ClientAddressReader, createClientAddressReader } from '../../http/client-address.ts';
import { OAuthError } from '../oauth-error.ts';
import type { Client } from './client.ts';
import { type ClientCredentials, readClientCredentials } from './client-credentials.ts';
import type { ClientRegistry } from './client-registry.ts';
import type { VerifyClientSecret } from './client-secret.ts';
import type { FailureLimit } from './failure-limit.ts';

/** What of a request proves the identity of the client. */
export interface ClientAuthenticationRequest {
  readonly authorization: string | undefined;
  readonly form: URLSearchParams;
  /** The request on the wire; its address is what guesses are counted by. */
  readonly incoming: IncomingMessage;
}

/** Proves clients' identity (RFC 6749 §2.3). Every client of the hub is confidential. */
export interface ClientAuthentication {
  /** The client, or undefined when the request presents no client credentials at all. */
  find(request: ClientAuthenticationRequest): Promise<Client | undefined>;
  /** The client; throws `invalid_client` when there are no or no valid credentials. */
  require(request: ClientAuthenticationRequest): Promise<Client>;
}

/** Authenticates clients, with a limit on guesses (RFC 6749 §2.3.1). */
export function createClientAuthentication({
  clients,
  verifyClientSecret,
  failureLimit,
  clientAddress = createClientAddressReader([]),
}: {
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly verifyClientSecret: VerifyClientSecret;
  readonly failureLimit: FailureLimit;
  /** Without it no proxy is trusted, and whoever comes through one shares its address. */
  readonly clientAddress?: ClientAddressReader;
}): ClientAuthentication {
  const authenticate = async (
    { clientId, clientSecret }: ClientCredentials,
    address: string,
  ): Promise<Client> => {
    const limited = `${address} ${clientId}`;
    const retryAfterSeconds = failureLimit.retryAfterSeconds(limited);
    if (retryAfterSeconds !== undefined) {
      throw new OAuthError('invalid_client', 'Too many failed attempts; try again later.', {
        retryAfterSeconds,
      });
    }
    const client = await clients.find(clientId);
    if (client !== undefined && (await verifyClientSecret(client, clientSecret))) return client;
    failureLimit.recordFailure(limited);
    throw new OAuthError('invalid_client', 'The client is unknown or its secret is wrong.');
  };

  const find = async ({ authorization, form, incoming }: ClientAuthenticationRequest) => {
    const credentials = readClientCredentials(authorization, form);
    return credentials && (await authenticate(credentials, clientAddress(incoming).address));
  };

  return {
    find,
    async require(request) {
      const client = await find(request);
      if (client !== undefined) return client;
      throw new OAuthError('invalid_client', 'The client did not authenticate itself.');
    },
  };
}
