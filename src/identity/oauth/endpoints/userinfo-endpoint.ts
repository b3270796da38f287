import type { Middleware } from 'koa';
import { authorizationToken } from '../../../platform/protocol/token-parameter.ts';
import { OAuthError } from '../oauth-error.ts';
import { openidScope, type UserClaims } from '../openid/claims.ts';
import { parameterValue } from '../request-parameters.ts';
import type { TokenVerifier } from '../tokens/token-verifier.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';

/**
 * The UserInfo endpoint, by GET and POST (OpenID Connect Core 1.0 §5.3): the claims that the user let the client of an
 * access token have. The token comes in the header or in the form of a POST (RFC 6750 §2).
 */
export function createUserInfoEndpoint({
  tokenVerifier,
  userClaims,
  countRefusal,
}: {
  readonly tokenVerifier: Pick<TokenVerifier, 'verify'>;
  readonly userClaims: UserClaims;
  readonly countRefusal: CountRefusal;
}): Middleware {
  const options = { parameters: ['access_token'], countRefusal, needsForm: false };
  return createJsonEndpoint(options, async ({ form, authorization }) => {
    const header = authorizationToken(authorization);
    const inForm = parameterValue(form, 'access_token');
    if (header !== undefined && inForm !== undefined) {
      throw new OAuthError('invalid_request', 'The request presents more than one token.');
    }
    const caller = await tokenVerifier.verify(header?.token ?? inForm ?? '');
    const { user, accessToken } = caller ?? {};
    if (accessToken === undefined || user === undefined) {
      throw new OAuthError('invalid_token', 'The token is unknown or expired.');
    }
    const { grantedScopes = [] } = accessToken;
    if (!grantedScopes.includes(openidScope)) {
      throw new OAuthError('insufficient_scope', 'The scope openid is needed.');
    }
    return userClaims(user, grantedScopes);
  });
}
