import type { CodeExchange, CodeExchangeResult, HubApi } from '../../client/hub-api.ts';
import type { ClientRegistry } from '../../identity/oauth/clients/client-registry.ts';
import type { ExchangeCode } from '../../identity/oauth/grants/code-exchange.ts';
import { OAuthError } from '../../identity/oauth/oauth-error.ts';
import { mayAccess } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import { emptyMembership } from '../../identity/rbac/membership.ts';
import { presentScopes } from '../../identity/rbac/scope.ts';
import { HubError } from '../../platform/errors.ts';
import { type AccessTarget, accessScopeFor } from '../../platform/protocol/client-id.ts';
import { text } from '../../platform/texts/text.ts';
import type { RouteAccess } from './route-access.ts';

/**
 * The hub as its own client sees it when the gateway plays that client: the same answers as over HTTP,
 * without the way there. Every lookup asks the verifier, whose cache a revocation empties at once.
 */
export function createDirectHubApi(deps: {
  readonly clientId: string;
  readonly target: AccessTarget;
  readonly access: Pick<RouteAccess, 'identify' | 'isGranted'>;
  readonly authorizer: Pick<Authorizer, 'groupNamesOf'>;
  readonly infoOf: (userName: string) => Promise<DisclosedUserInfo>;
  readonly exchangeCode: ExchangeGuardCode;
}): HubApi {
  const { clientId, target, access, authorizer, infoOf, exchangeCode } = deps;
  const accessScope = accessScopeFor(target);

  return {
    async userForToken(token) {
      const caller = await access.identify(token);
      if (caller === undefined) return null;
      const { owner, scopes, accessToken, sessionId } = caller;
      // Said outright, since a client does not know who is in which group.
      const isGranted = await access.isGranted(caller, target);
      const mayTellInfo =
        owner.kind === 'user' &&
        mayAccess(scopes, 'read:users:info', { kind: 'user', name: owner.name }, emptyMembership);
      return {
        kind: owner.kind,
        name: owner.name,
        groups: owner.kind === 'user' ? await authorizer.groupNamesOf(owner.name) : [],
        scopes: presentScopes(isGranted ? [...scopes, accessScope] : scopes),
        user_info: mayTellInfo ? await infoOf(owner.name) : {},
        session_id: sessionId ?? null,
        client_id: accessToken?.clientId ?? null,
        token_id: accessToken?.id ?? null,
        token_expires_at: accessToken?.expiresAt?.getTime() ?? null,
      };
    },

    exchangeCode: (code) => exchangeCode(clientId, code),
  };
}

/** What upstreams are told of a user beside the name, where their scopes allow it. */
export interface DisclosedUserInfo {
  readonly displayName?: string | undefined;
  /** An address that no one has verified is not told: upstreams may know users by it. */
  readonly verifiedEmail?: string | undefined;
}

/** Exchanges a code that the guard of a route got as the client of that route. */
export type ExchangeGuardCode = (
  clientId: string,
  code: CodeExchange,
) => Promise<CodeExchangeResult>;

export function createExchangeGuardCode(deps: {
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly exchangeCode: ExchangeCode;
}): ExchangeGuardCode {
  return async (clientId, code) => {
    const client = await deps.clients.find(clientId);
    if (client === undefined) {
      throw new HubError('not_found', text`There is no such client any more.`);
    }
    try {
      const { issued, lifetimeSeconds } = await deps.exchangeCode(client, code);
      return {
        outcome: 'issued',
        accessToken: issued.token,
        expiresInSeconds: lifetimeSeconds,
      };
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return { outcome: 'refused', description: error.message };
    }
  };
}
