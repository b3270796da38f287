import type { Middleware } from 'koa';
import type { Logger } from 'pino';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import type { Client } from '../clients/client.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import { OAuthError } from '../oauth-error.ts';
import { requireParameter } from '../request-parameters.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import type { RefreshTokenStore } from '../tokens/refresh-token-store.ts';
import { type CountRefusal, createJsonEndpoint } from './json-endpoint.ts';

/**
 * The revocation endpoint (RFC 7009 §2). A client ends tokens that were issued to it; one that
 * is already gone needs no ending, so it gets the same 200, with `{}` for clients that take every answer for JSON. A
 * refresh token takes its access tokens along (§2.1).
 */
export function createRevocationEndpoint({
  clientAuthentication,
  accessTokens,
  refreshTokens,
  countRefusal,
  log,
}: {
  readonly clientAuthentication: ClientAuthentication;
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash' | 'revoke'>;
  readonly refreshTokens: Pick<RefreshTokenStore, 'find' | 'end'>;
  readonly countRefusal: CountRefusal;
  readonly log: Logger;
}): Middleware {
  // The hint only speeds a search up that needs no help here, so any value is accepted (§2.1).
  const parameters = ['token', 'token_type_hint'];
  return createJsonEndpoint({ parameters, countRefusal }, async (request) => {
    const client = await clientAuthentication.require(request);
    const token = requireParameter(request.form, 'token');
    const grant = await refreshTokens.find(token);
    if (grant !== undefined) {
      requireOwn(grant, client);
      await refreshTokens.end(grant);
      return {};
    }
    const accessToken = await accessTokens.findByHash(hashSecret(token));
    if (accessToken === undefined) return {};
    requireOwn(accessToken, client);
    await accessTokens.revoke(accessToken.id);
    log.info({ client: client.clientId, token: accessToken.id }, 'token revoked by client');
    return {};
  });
}

function requireOwn({ clientId }: { readonly clientId?: string }, client: Client): void {
  if (clientId === client.clientId) return;
  throw new OAuthError('unauthorized_client', 'The token was not issued to this client.');
}
