import { accessScopeFor } from '../../../platform/protocol/client-id.ts';
import { excessScopes } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import { presentScopes, resolveScopes } from '../../rbac/scope.ts';
import { OAuthError } from '../oauth-error.ts';
import { parameterValue } from '../request-parameters.ts';
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
  return async ({ clientId, identity }, form, resource) => {
    const serviceName = identity.service ?? '';
    const owner = { kind: 'service', name: serviceName } as const;
    const [held, membership] = await Promise.all([
      authorizer.scopesOfOwner(owner),
      authorizer.membership(),
    ]);
    const access = resource === undefined ? undefined : [accessScopeFor(resource)];
    const scopes = access ?? parameterValue(form, 'scope')?.split(' ') ?? presentScopes(held);
    const { scopes: wanted, unresolved } = resolveScopes(scopes, {
      catalogue: authorizer.catalogue,
      owner,
      client: identity,
      inherited: held,
    });
    const isMore = unresolved.length > 0 || excessScopes(held, wanted, membership).length > 0;
    if (isMore && access !== undefined)
      throw new OAuthError(
        'invalid_target',
        'The roles of the service do not allow this resource.',
      );
    if (isMore || scopes.length === 0)
      throw new OAuthError('invalid_scope', 'The roles of the service do not allow this scope.');
    const accessToken = {
      owner: { kind: 'service', serviceName },
      clientId,
      scopes,
      note: 'Client credentials',
      expiresAt: new Date(now() + shortLifetimeSeconds * 1000),
    } as const;
    const issued = await accessTokens.create(accessToken);
    return { issued, accessToken, lifetimeSeconds: shortLifetimeSeconds };
  };
}
