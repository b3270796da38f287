import type { Middleware } from 'koa';
import { formatScopeList } from '../../../platform/protocol/scope-list.ts';
import type { ClientGrant } from '../clients/client.ts';
import { requireGrant } from '../clients/client-access.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import type { ExchangeCode } from '../grants/code-exchange.ts';
import type { AnswerGrant } from '../grants/refresh-grant.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue, requireParameter } from '../request-parameters.ts';
import { scopesToTell } from '../requested-scopes.ts';
import { type FindResource, requestedResource } from '../resource-indicators.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';

/** A successful answer of the token endpoint (RFC 6749 §5.1). */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly scope: string;
  /** OpenID Connect Core 1.0 §3.1.3.3. */
  readonly id_token?: string;
  readonly refresh_token?: string;
  /** RFC 8693 §2.2.1. */
  readonly issued_token_type?: string;
}

const parameters = [
  'grant_type',
  'code',
  'redirect_uri',
  'code_verifier',
  'refresh_token',
  'device_code',
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'scope',
];

/** Grant types beside `authorization_code`, and what a client has to be configured for to use them. */
export const furtherGrants = {
  refresh_token: 'refresh',
  client_credentials: 'client_credentials',
  'urn:ietf:params:oauth:grant-type:device_code': 'device',
  'urn:ietf:params:oauth:grant-type:token-exchange': 'token_exchange',
} as const satisfies Readonly<Record<string, ClientGrant>>;

/** The token endpoint (RFC 6749 §3.2). */
export function createTokenEndpoint({
  clientAuthentication,
  exchangeCode,
  answerGrants,
  findResource,
  countRefusal,
}: {
  readonly clientAuthentication: ClientAuthentication;
  readonly exchangeCode: ExchangeCode;
  readonly answerGrants: Readonly<Record<keyof typeof furtherGrants, AnswerGrant>>;
  readonly findResource: FindResource;
  readonly countRefusal: CountRefusal;
}): Middleware {
  const answer: AnswerGrant = async (client, form) => {
    const type = requireParameter(form, 'grant_type');
    const resource = await requestedResource(form, findResource);
    if (type === 'authorization_code') {
      return exchangeCode(client, {
        code: requireParameter(form, 'code'),
        redirectUri: parameterValue(form, 'redirect_uri'),
        codeVerifier: parameterValue(form, 'code_verifier'),
        resource,
      });
    }
    if (!isFurtherGrant(type))
      throw new OAuthError('unsupported_grant_type', 'The grant_type is not known.');
    requireGrant(client, furtherGrants[type]);
    return answerGrants[type](client, form, resource);
  };

  return createJsonEndpoint(
    { parameters, countRefusal },
    async (request): Promise<TokenResponse> => {
      const { form } = request;
      const client = await clientAuthentication.require(request);
      const granted = await answer(client, form);
      const { issued, accessToken, requestedScope, lifetimeSeconds } = granted;
      const { refreshToken, idToken, issuedTokenType } = granted;
      return {
        access_token: issued.token,
        token_type: 'Bearer',
        expires_in: lifetimeSeconds,
        scope: formatScopeList(scopesToTell(client, accessToken.scopes, requestedScope)),
        ...(issuedTokenType !== undefined && { issued_token_type: issuedTokenType }),
        ...(idToken !== undefined && { id_token: idToken }),
        ...(refreshToken !== undefined && { refresh_token: refreshToken }),
      };
    },
  );
}

function isFurtherGrant(type: string): type is keyof typeof furtherGrants {
  return Object.hasOwn(furtherGrants, type);
}
