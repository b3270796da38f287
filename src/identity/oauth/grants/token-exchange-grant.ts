import { hashSecret } from '../../../platform/crypto/hash.ts';
import { accessScopeFor } from '../../../platform/protocol/client-id.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { OAuthError } from '../oauth-error.ts';
import { isOpenidGrant } from '../openid/claims.ts';
import { parameterValue, requireParameter } from '../request-parameters.ts';
import { exceeds, identifyScopes, offlineScope } from '../requested-scopes.ts';
import type { AccessTokenStore } from '../tokens/access-token-store.ts';
import type { TokenVerifier } from '../tokens/token-verifier.ts';
import { shortLifetimeSeconds } from './code-exchange.ts';
import type { AnswerGrant } from './refresh-grant.ts';

/** The only type of tokens that are taken and given (RFC 8693 §3). */
export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token';

/**
 * Gives a client, for an access token that it has, one that is good for less: one service or server, or some of its scopes
 * (RFC 8693). It ends with the one that it was given for, and within an hour.
 */
export function createTokenExchangeGrant({
  tokenVerifier,
  accessTokens,
  clients,
  authorizer,
  now = Date.now,
}: {
  readonly tokenVerifier: Pick<TokenVerifier, 'verify'>;
  readonly accessTokens: Pick<AccessTokenStore, 'findByHash' | 'create'>;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly authorizer: Pick<Authorizer, 'membership' | 'catalogue'>;
  readonly now?: () => number;
}): AnswerGrant {
  /** Of another client it would count as consent to this one. */
  async function subjectOf(form: URLSearchParams, { clientId }: Client) {
    const token = requireParameter(form, 'subject_token');
    const [stored, caller] = await Promise.all([
      accessTokens.findByHash(hashSecret(token)),
      tokenVerifier.verify(token),
    ]);
    if (stored === undefined || caller === undefined || stored.clientId !== clientId)
      throw new OAuthError('invalid_request', 'The subject_token is none of this client.');
    return { stored, caller };
  }

  /** What users must hold to enter what the request is about, by its address or the id of its client. */
  async function accessTo(form: URLSearchParams, resource: Parameters<AnswerGrant>[2]) {
    const found = new Set(resource === undefined ? [] : [accessScopeFor(resource)]);
    for (const audience of form.getAll('audience')) {
      const { accessScope } = (await clients.find(audience)) ?? {};
      if (accessScope === undefined)
        throw new OAuthError('invalid_target', 'The audience is no service or server of this hub.');
      found.add(accessScope);
    }
    if (found.size > 1)
      throw new OAuthError('invalid_target', 'A token is for one service or server only.');
    return [...found];
  }

  return async (client, form, resource) => {
    requireTypes(form);
    const { stored, caller } = await subjectOf(form, client);
    const { owner, scopes: grantedScopes, user } = caller;
    const membership = await authorizer.membership();
    const context = { client, owner, grantedScopes, membership, catalogue: authorizer.catalogue };
    const access = await accessTo(form, resource);
    if (exceeds(access, context))
      throw new OAuthError('invalid_target', 'The subject_token gives no access to this.');
    const granted = stored.scopes.filter(
      (scope) => !isOpenidGrant(scope) && scope !== offlineScope,
    );
    const requested = parameterValue(form, 'scope')?.split(' ');
    const bound = access.length === 0 ? undefined : [...access, ...identifyScopes];
    const scopes = [...new Set([...access, ...(requested ?? bound ?? granted)])];
    // `inherit` grows with its owner, and so stands for more than any list that equals it now.
    const isMore =
      exceeds(scopes, context) ||
      (scopes.includes('inherit') && !granted.includes('inherit')) ||
      (bound !== undefined && scopes.some((scope) => !bound.includes(scope)));
    if (isMore) throw new OAuthError('invalid_scope', 'The scope goes further than the token.');
    const time = now();
    const endsAtMs = time + shortLifetimeSeconds * 1000;
    const expiresAt = new Date(Math.min(endsAtMs, stored.expiresAt?.getTime() ?? endsAtMs));
    const accessToken = {
      owner:
        user === undefined
          ? ({ kind: 'service', serviceName: owner.name } as const)
          : ({ kind: 'user', userId: user.id, userName: user.name } as const),
      clientId: client.clientId,
      ...(stored.sessionId !== undefined && { sessionId: stored.sessionId }),
      madeBy: stored.id,
      scopes,
      note: stored.note,
      expiresAt,
    };
    const issued = await accessTokens.create(accessToken);
    const lifetimeSeconds = Math.floor((expiresAt.getTime() - time) / 1000);
    return { issued, accessToken, lifetimeSeconds, issuedTokenType: accessTokenType };
  };
}

/** RFC 8693 §2.1. */
function requireTypes(form: URLSearchParams): void {
  const types = [
    requireParameter(form, 'subject_token_type'),
    parameterValue(form, 'requested_token_type') ?? accessTokenType,
  ];
  if (types.some((type) => type !== accessTokenType))
    throw new OAuthError('invalid_request', 'Only access tokens are taken and given.');
  if (form.has('actor_token') || form.has('actor_token_type'))
    throw new OAuthError('invalid_request', 'An actor_token is not supported.');
}
