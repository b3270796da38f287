import { accessScopeFor } from '../../../platform/protocol/client-id.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import { presentScopes } from '../../rbac/scope.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';
import { exceeds } from '../requested-scopes.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import { shortLifetimeSeconds } from './code-exchange.ts';
import type { AnswerGrant } from './refresh-grant.ts';

/**
 * Gives a service a token of its own (RFC 6749 §4.4), with what its roles allow or, by `scope`, a part of it: what is
 * leaked of that does less than the secret, and for an hour.
 */
export function createClientCredentialsGrant({
  accessTokens,
  authorizer,
  now = Date.now,
}: {
  readonly accessTokens: Pick<AccessTokenStore, 'create'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membership' | 'catalogue'>;
  readonly now?: () => number;
}): AnswerGrant {
  return async (client, form, resource) => {
    const serviceName = client.identity.service ?? '';
    const owner = { kind: 'service', name: serviceName } as const;
    const [grantedScopes, membership] = await Promise.all([
      authorizer.scopesOfOwner(owner),
      authorizer.membership(),
    ]);
    const access = resource === undefined ? undefined : [accessScopeFor(resource)];
    const scopes =
      access ?? parameterValue(form, 'scope')?.split(' ') ?? presentScopes(grantedScopes);
    const { catalogue } = authorizer;
    const isMore = exceeds(scopes, { client, owner, grantedScopes, membership, catalogue });
    if (isMore && access !== undefined)
      throw new OAuthError(
        'invalid_target',
        'The roles of the service do not allow this resource.',
      );
    if (isMore || scopes.length === 0)
      throw new OAuthError('invalid_scope', 'The roles of the service do not allow this scope.');
    const accessToken = {
      owner: { kind: 'service', serviceName },
      clientId: client.clientId,
      scopes,
      note: 'Client credentials',
      expiresAt: new Date(now() + shortLifetimeSeconds * 1000),
    } as const;
    const issued = await accessTokens.create(accessToken);
    return { issued, accessToken, lifetimeSeconds: shortLifetimeSeconds };
  };
}
