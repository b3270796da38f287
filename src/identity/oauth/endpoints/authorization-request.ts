import { HubError } from '../../../platform/errors.ts';
import type { AccessTarget } from '../../../platform/protocol/client-id.ts';
import { type Text, text } from '../../../platform/texts/text.ts';
import type { Client } from '../clients/client.ts';
import type { ClientDocuments } from '../clients/client-documents.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { absoluteRedirectUri, isRegisteredRedirectUri } from '../clients/redirect-uri.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { OAuthError } from '../oauth-error.ts';
import type { AuthorizationResponseTarget } from '../oauth-error-response.ts';
import {
  type OpenidRequest,
  openidParameters,
  readOpenidRequest,
} from '../openid/openid-request.ts';
import { isS256CodeChallenge } from '../pkce.ts';
import {
  findRepeatedParameter,
  parameterValue,
  rejectRepeatedParameters,
  requireParameter,
} from '../request-parameters.ts';
import { type FindResource, requestedResource } from '../resource-indicators.ts';

/** A valid authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3). */
export interface AuthorizationRequest {
  readonly client: Client;
  /** As sent; undefined when it was left out. */
  readonly redirectUri: string | undefined;
  readonly scope: string | undefined;
  /** Challenge of the method S256. */
  readonly codeChallenge: string | undefined;
  /** OpenID Connect Core 1.0 §3.1.2.1. */
  readonly nonce: string | undefined;
  /** Undefined for plain OAuth. */
  readonly openid: OpenidRequest | undefined;
  /** What alone the token is to be good for (RFC 8707 §2). */
  readonly resource: AccessTarget | undefined;
  readonly target: AuthorizationResponseTarget;
}

/** An authorization request that fails after its redirect URI is trusted: the client is told. */
export interface RefusedAuthorizationRequest {
  readonly target: AuthorizationResponseTarget;
  readonly error: OAuthError;
}

export type AuthorizationRequestReading =
  | { readonly request: AuthorizationRequest; readonly refused?: never }
  | { readonly request?: never; readonly refused: RefusedAuthorizationRequest };

/** What the checks of an authorization request compare it with. */
export interface AuthorizationRequestContext {
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly clientDocuments: Pick<ClientDocuments, 'read'>;
  readonly findResource: FindResource;
  readonly issuer: string;
  readonly signingKeys: Pick<SigningKeys, 'verify'>;
}

const redirectionParameters = ['client_id', 'redirect_uri'];

const otherParameters = [
  'response_type',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  ...openidParameters,
];

/**
 * Checks an authorization request, in this order. Until the redirect URI is trusted a failure is an
 * error page and never a redirect (RFC 6749 §4.1.2.1); after that it goes to the client. `userId`: of who brings it, where
 * that is known.
 */
export async function readAuthorizationRequest(
  parameters: URLSearchParams,
  context: AuthorizationRequestContext,
  userId?: string,
): Promise<AuthorizationRequestReading> {
  rejectRepeatedClientOrRedirectUri(parameters);
  const client = await requireKnownClient(parameters, context, userId);
  const redirectUri = requireRegisteredRedirectUri(parameters, client);
  const target = responseTarget(parameters, client, context.issuer, redirectUri);
  try {
    rejectRepeatedParameters(parameters, otherParameters);
    requireResponseTypeCode(parameters);
    const codeChallenge = requireS256CodeChallenge(parameters, client);
    const scope = parameterValue(parameters, 'scope');
    const nonce = parameterValue(parameters, 'nonce');
    const openid = await readOpenidRequest(parameters, client, context);
    const resource = await requestedResource(parameters, context.findResource);
    const read = { client, redirectUri, scope, codeChallenge, nonce, openid, resource, target };
    return { request: read };
  } catch (error) {
    if (error instanceof OAuthError) return { refused: { target, error } };
    throw error;
  }
}

/** Whether an authorization request is of a client whose document says what it is. */
export async function isAgent(
  parameters: URLSearchParams,
  { clients }: Pick<AuthorizationRequestContext, 'clients'>,
): Promise<boolean> {
  const client = await clients.find(parameterValue(parameters, 'client_id') ?? '');
  return client?.kind === 'agent';
}

function rejectRepeatedClientOrRedirectUri(parameters: URLSearchParams): void {
  const repeated = findRepeatedParameter(parameters, redirectionParameters);
  if (repeated !== undefined)
    throw badRequest(text`The parameter ${repeated} was sent more than once.`);
}

async function requireKnownClient(
  parameters: URLSearchParams,
  { clients, clientDocuments }: AuthorizationRequestContext,
  userId: string | undefined,
): Promise<Client> {
  const clientId = parameterValue(parameters, 'client_id');
  if (clientId === undefined) throw missing('client_id');
  const client = await clients.find(clientId);
  if (client === undefined)
    throw badRequest(text`The application that sent you here is not known.`);
  return client.kind === 'agent' ? await clientDocuments.read(client, userId) : client;
}

/** Compares the redirect URI exactly (RFC 9700 §2.1). Left out, it is the one registered (RFC 6749 §3.1.2.3). */
function requireRegisteredRedirectUri(
  parameters: URLSearchParams,
  client: Client,
): string | undefined {
  const redirectUri = parameterValue(parameters, 'redirect_uri');
  if (redirectUri === undefined) {
    if (client.redirectUris.length === 1) return undefined;
    throw missing('redirect_uri');
  }
  if (isRegisteredRedirectUri(redirectUri, client)) return redirectUri;
  throw badRequest(text`The application asked to send you to an address it has not registered.`);
}

function responseTarget(
  parameters: URLSearchParams,
  { redirectUris, origin }: Client,
  issuer: string,
  redirectUri = redirectUris[0] ?? '',
): AuthorizationResponseTarget {
  return {
    redirectUri: absoluteRedirectUri(redirectUri, origin),
    // Which of several states would be the client's? None is sent back then.
    state:
      findRepeatedParameter(parameters, ['state']) === undefined
        ? parameterValue(parameters, 'state')
        : undefined,
    issuer,
  };
}

function requireResponseTypeCode(parameters: URLSearchParams): void {
  if (requireParameter(parameters, 'response_type') === 'code') return;
  throw new OAuthError('unsupported_response_type', 'The only response_type is code.');
}

/** A challenge is optional, but for public clients; once there is one it must be S256 (RFC 9700 §2.1.1). */
function requireS256CodeChallenge(
  parameters: URLSearchParams,
  { isPublic }: Client,
): string | undefined {
  const codeChallenge = parameterValue(parameters, 'code_challenge');
  const method = parameterValue(parameters, 'code_challenge_method');
  if (codeChallenge === undefined) {
    if (method === undefined && !isPublic) return undefined;
    throw new OAuthError('invalid_request', 'The parameter code_challenge is missing.');
  }
  // Without a method the challenge is `plain` (RFC 7636 §4.3), which hides nothing.
  if (method !== 'S256') {
    throw new OAuthError('invalid_request', 'The code_challenge_method must be S256.');
  }
  if (!isS256CodeChallenge(codeChallenge)) {
    throw new OAuthError('invalid_request', 'The code_challenge is not one of the method S256.');
  }
  return codeChallenge;
}

function missing(name: string): HubError {
  return badRequest(text`The parameter ${name} is missing.`);
}

function badRequest(message: Text): HubError {
  return new HubError('bad_request', message, {
    hint: text`The link that brought you here is faulty; tell the operator of the application.`,
  });
}
