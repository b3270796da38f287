import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import { OAuthError } from '../oauth-error.ts';
import { requireParameter } from '../request-parameters.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';

/**
 * The revocation endpoint (RFC 7009 §2). A client ends tokens that were issued to it; one that
 * is already gone needs no ending, so it gets the same 200, with `{}` for clients that take every answer for JSON.
 */
export function createRevocationEndpoint({
  clientAuthentication,
  accessTokens,
  countRefusal,
  log,
}: {
  readonly clientAuthentication: ClientAuthentication;
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash' | 'revoke'>;
  readonly countRefusal: CountRefusal;
  readonly log: Logger;
}): Middleware {
  // The hint only speeds a search up that needs no help here, so any value is accepted (§2.1).
  const parameters = ['token', 'token_type_hint'];
  return createJsonEndpoint({ parameters, countRefusal }, async (request) => {
    const client = await clientAuthentication.require(request);
    const token = requireParameter(request.form, 'token');
    const accessToken = await accessTokens.findByHash(hashSecret(token));
    if (accessToken === undefined) return {};
    if (accessToken.clientId !== client.clientId) {
      throw new OAuthError('unauthorized_client', 'The token was not issued to this client.');
    }
    await accessTokens.revoke(accessToken.id);
    log.info({ client: client.clientId, token: accessToken.id }, 'token revoked by client');
    return {};
  });
}
