import type { Middleware } from 'koa';
import { formatScopeList } from '../../../platform/protocol/scope-list.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import type { ExchangeCode } from '../grants/code-exchange.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue, requireParameter } from '../request-parameters.ts';
import { scopesToTell } from '../requested-scopes.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';

/** A successful answer of the token endpoint (RFC 6749 §5.1). */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'Bearer';
  readonly expires_in: number;
  readonly scope: string;
  /** OpenID Connect Core 1.0 §3.1.3.3. */
  readonly id_token?: string;
}

const parameters = ['grant_type', 'code', 'redirect_uri', 'code_verifier', 'scope'];

/** The token endpoint (RFC 6749 §3.2). The one grant is `authorization_code`. */
export function createTokenEndpoint({
  clientAuthentication,
  exchangeCode,
  countRefusal,
}: {
  readonly clientAuthentication: ClientAuthentication;
  readonly exchangeCode: ExchangeCode;
  readonly countRefusal: CountRefusal;
}): Middleware {
  return createJsonEndpoint(
    { parameters, countRefusal },
    async (request): Promise<TokenResponse> => {
      const { form } = request;
      const client = await clientAuthentication.require(request);
      requireAuthorizationCodeGrant(form);
      const { issued, accessToken, lifetimeSeconds, idToken } = await exchangeCode(client, {
        code: requireParameter(form, 'code'),
        redirectUri: parameterValue(form, 'redirect_uri'),
        codeVerifier: parameterValue(form, 'code_verifier'),
      });
      return {
        access_token: issued.token,
        token_type: 'Bearer',
        expires_in: lifetimeSeconds,
        scope: formatScopeList(scopesToTell(client, accessToken.scopes)),
        ...(idToken !== undefined && { id_token: idToken }),
      };
    },
  );
}

function requireAuthorizationCodeGrant(form: URLSearchParams): void {
  if (requireParameter(form, 'grant_type') === 'authorization_code') return;
  throw new OAuthError('unsupported_grant_type', 'The only grant_type is authorization_code.');
}
