import type { Logger } from 'pino';
import { createKeyedQueue } from '../../../platform/concurrency/keyed-queue.ts';
import type { AccessTarget } from '../../../platform/protocol/client-id.ts';
import { formatScopeList } from '../../../platform/protocol/scope-list.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { UserStore } from '../../users/user-store.ts';
import type { Client } from '../clients/client.ts';
import { scopesForClient } from '../clients/client-access.ts';
import { OAuthError } from '../oauth-error.ts';
import { openidGrants, openidScope, userInfoScope } from '../openid/claims.ts';
import { parameterValue, requireParameter } from '../request-parameters.ts';
import { boundTo, identifyScope, requiredScopes, scopesToTell } from '../requested-scopes.ts';
import type { RefreshTokenStore } from '../tokens/refresh-token-store.ts';
import { type GrantedToken, loginNote, shortLifetimeSeconds } from './code-exchange.ts';

/** Answers an access token request of one grant type; throws OAuthError (RFC 6749 §5.2). */
export type AnswerGrant = (
  client: Client,
  form: URLSearchParams,
  /** What alone the token is to be good for (RFC 8707 §2.2). */
  resource?: AccessTarget,
) => Promise<GrantedToken>;

/** More at once are no lost answers that a client asks for again. */
const maxRefreshesOfGrant = 200;

/** Refreshes an access token (RFC 6749 §6); each refresh token is good for one use. */
export function createRefreshGrant({
  refreshTokens,
  users,
  authorizer,
  log,
  now = Date.now,
}: {
  readonly refreshTokens: Pick<RefreshTokenStore, 'find' | 'refresh'>;
  readonly users: Pick<UserStore, 'findById'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membership'>;
  readonly log: Logger;
  readonly now?: () => number;
}): AnswerGrant {
  // They wait for one another here, not in the database, where each would keep a connection from everybody else.
  const refreshes = createKeyedQueue({ maxQueueLength: maxRefreshesOfGrant });

  /** Who may not use the client now gets no further tokens for it; it comes back with the right. */
  async function mayUse(client: Client, userId: string): Promise<boolean> {
    const user = await users.findById(userId);
    return (
      user !== undefined && (await scopesForClient(client, user.name, authorizer)) !== undefined
    );
  }

  return async (client, form, resource) => {
    const refreshToken = requireParameter(form, 'refresh_token');
    const grant = await refreshTokens.find(refreshToken);
    if (grant?.clientId !== client.clientId || !(await mayUse(client, grant.userId)))
      throw invalidGrant();
    const { userId, sessionId } = grant;
    const requestedScope = parameterValue(form, 'scope');
    const scopes = narrowed(client, grant.scopes, requestedScope);
    const accessToken = {
      owner: { kind: 'user', userId },
      clientId: client.clientId,
      ...(sessionId !== undefined && { sessionId }),
      scopes: resource === undefined ? scopes : boundTo(resource, scopes),
      note: loginNote(client),
      expiresAt: new Date(now() + shortLifetimeSeconds * 1000),
    } as const;
    const result = await refreshes.run(grant.id, () =>
      refreshTokens.refresh(refreshToken, accessToken),
    );
    if (result === undefined)
      throw new OAuthError('invalid_request', 'Too many refreshes of one grant.');
    if (result.outcome === 'refreshed')
      return { ...result, accessToken, requestedScope, lifetimeSeconds: shortLifetimeSeconds };
    if (result.outcome === 'replayed') {
      const { clientId } = client;
      log.warn({ client: clientId, revoked: result.revokedCount }, 'refresh token replayed');
    }
    throw invalidGrant();
  };
}

/** "The requested scope MUST NOT include any scope not originally granted" (RFC 6749 §6); what every grant holds stays. */
function narrowed(
  client: Client,
  granted: readonly string[],
  requested: string | undefined,
): readonly string[] {
  if (requested === undefined) return granted;
  const names = requested.split(' ');
  const known = [identifyScope, ...granted, ...scopesToTell(client, granted)].map((scope) =>
    formatScopeList([scope]),
  );
  if (!names.every((name) => known.includes(name)))
    throw new OAuthError('invalid_scope', 'The scope goes further than what was granted.');
  const ofOpenid = names.includes(openidScope)
    ? [...openidGrants(names, [], true), userInfoScope]
    : [];
  const kept = [...requiredScopes(client), ...ofOpenid];
  return granted.filter(
    (scope) => kept.includes(scope) || names.includes(formatScopeList([scope])),
  );
}

function invalidGrant(): OAuthError {
  return new OAuthError('invalid_grant', 'The refresh token is invalid, or was used before.');
}
