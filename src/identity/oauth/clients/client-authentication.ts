import type { IncomingMessage } from 'node:http';
import { identifyActor } from '../../../platform/audit/actor.ts';
import {
  type ClientAddressReader,
  createClientAddressReader,
} from '../../../platform/http/request-address.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';
import type { Client } from './client.ts';
import { readClientAssertion, type VerifyClientAssertion } from './client-assertion.ts';
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

/** Proves clients' identity (RFC 6749 §2.3). */
export interface ClientAuthentication {
  /** The client, or undefined when the request presents no client credentials at all. */
  find(request: ClientAuthenticationRequest): Promise<Client | undefined>;
  /**
   * The client; a public one only has to name itself (RFC 6749 §3.2.1). Throws `invalid_client` when there are no or no
   * valid credentials.
   */
  require(request: ClientAuthenticationRequest): Promise<Client>;
}

/** Authenticates clients, with a limit on guesses (RFC 6749 §2.3.1). */
export function createClientAuthentication({
  clients,
  verifyClientSecret,
  verifyClientAssertion,
  failureLimit,
  clientAddress = createClientAddressReader([]),
}: {
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly verifyClientSecret: VerifyClientSecret;
  readonly verifyClientAssertion: VerifyClientAssertion;
  readonly failureLimit: FailureLimit;
  /** Without it no proxy is trusted, and all clients behind one share its address. */
  readonly clientAddress?: ClientAddressReader;
}): ClientAuthentication {
  const authenticate = async (
    clientId: string,
    isProof: (client: Client) => Promise<boolean>,
    address: string,
  ): Promise<Client> => {
    const client = await failureLimit.attempt(
      `${address} ${clientId}`,
      async () => {
        const found = await clients.find(clientId);
        return found && (await isProof(found)) ? found : undefined;
      },
      (retryAfterSeconds) =>
        new OAuthError('invalid_client', 'Too many failed attempts; try again later.', {
          retryAfterSeconds,
        }),
    );
    if (client === undefined)
      throw new OAuthError(
        'invalid_client',
        'The client is unknown or its secret or assertion is wrong.',
      );
    identifyActor({ kind: 'service', name: client.clientId });
    return client;
  };

  const find = async ({ authorization, form, incoming }: ClientAuthenticationRequest) => {
    const { address } = clientAddress(incoming);
    const assertion = await readClientAssertion(authorization, form);
    if (assertion !== undefined) {
      const { clientId, jwt } = assertion;
      return authenticate(clientId, (client) => verifyClientAssertion(client, jwt), address);
    }
    const credentials = readClientCredentials(authorization, form);
    if (credentials === undefined) return undefined;
    const { clientId, clientSecret } = credentials;
    const isProof = async (client: Client) =>
      !hasKeys(client) && (await verifyClientSecret(client, clientSecret));
    return authenticate(clientId, isProof, address);
  };

  return {
    find,
    async require(request) {
      const client = await find(request);
      if (client !== undefined) return client;
      const named = await clients.find(parameterValue(request.form, 'client_id') ?? '');
      if (named?.isPublic === true) return named;
      throw new OAuthError('invalid_client', 'The client did not authenticate itself.');
    },
  };
}

/** Whether it signs assertions, and its secret is none at the endpoints of OAuth. */
function hasKeys({ jwks, jwksUri }: Client): boolean {
  return jwks !== undefined || jwksUri !== undefined;
}

/** What a client presents to prove who it is (RFC 6749 §2.3.1). */
interface ClientCredentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

/**
 * Reads client credentials from HTTP Basic or from the body, never from both: a client must not use
 * more than one method in a request (RFC 6749 §2.3). Undefined when there are none.
 */
export function readClientCredentials(
  authorization: string | undefined,
  form: URLSearchParams,
): ClientCredentials | undefined {
  const basic = readBasicCredentials(authorization);
  const clientId = parameterValue(form, 'client_id');
  const clientSecret = parameterValue(form, 'client_secret');
  if (basic === undefined) {
    if (clientId === undefined || clientSecret === undefined) return undefined;
    return { clientId, clientSecret };
  }
  if (clientSecret !== undefined) {
    throw new OAuthError('invalid_request', 'The client authenticated in two ways at once.');
  }
  if (clientId !== undefined && clientId !== basic.clientId) {
    throw new OAuthError('invalid_request', 'The client named itself in two different ways.');
  }
  return basic;
}

function readBasicCredentials(authorization: string | undefined): ClientCredentials | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '') ?? [];
  if (encoded === undefined) {
    if (!/^basic\b/i.test(authorization ?? '')) return undefined;
    throw new OAuthError('invalid_client', 'The Authorization header is malformed.');
  }
  const text = Buffer.from(encoded, 'base64').toString();
  const colon = text.indexOf(':');
  if (colon === -1)
    throw new OAuthError('invalid_client', 'The Authorization header is malformed.');
  return {
    clientId: decodeFormText(text.slice(0, colon)),
    clientSecret: decodeFormText(text.slice(colon + 1)),
  };
}

/** Id and secret are form-encoded before they go into the header (RFC 6749 §2.3.1, appendix B). */
function decodeFormText(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (error) {
    throw new OAuthError('invalid_client', 'The Authorization header is not form-encoded.', {
      cause: error,
    });
  }
}
