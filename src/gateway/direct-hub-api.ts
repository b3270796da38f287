import type { CodeExchange, HubApi, UserModel } from '../client/hub-api.ts';
import type { TokenVerifier } from '../oauth/tokens/token-verifier.ts';
import { checkAccess } from '../rbac/access-check.ts';
import type { Caller } from '../rbac/caller.ts';
import { emptyMembership, type Membership } from '../rbac/membership.ts';
import { presentScopes } from '../rbac/scope.ts';

/** Exchanges a code for the client of a route; how is the authorization server's business. */
export type ExchangeCode = (
  clientId: string,
  exchange: CodeExchange,
) => ReturnType<HubApi['exchangeCode']>;

/**
 * The hub as its own client sees it when the gateway plays that client: the same answers as over HTTP,
 * without the way there. Every lookup asks the verifier, whose cache a revocation empties at once.
 */
export function createDirectHubApi(deps: {
  readonly clientId: string;
  /** The scope that admits to the client; told where the caller holds it by way of a group. */
  readonly accessScope: string;
  readonly membership: () => Promise<Membership>;
  readonly tokens: Pick<TokenVerifier, 'verify'>;
  readonly exchangeCode: ExchangeCode;
  readonly groupsOf: (userName: string) => Promise<readonly string[]>;
  /** Told of each identified caller, for activity and refresh; may turn the caller away. */
  readonly admit: (caller: Caller) => Promise<boolean>;
}): HubApi {
  /** What a caller may do, in terms that need no knowledge of groups. */
  async function scopesOf({ scopes }: Caller): Promise<Iterable<string>> {
    const may = (membership: Membership) =>
      checkAccess(scopes, deps.accessScope, undefined, membership) === 'granted';
    if (may(emptyMembership) || !may(await deps.membership())) return scopes;
    return [...scopes, deps.accessScope];
  }

  return {
    async userForToken(token): Promise<UserModel | null> {
      const caller = await deps.tokens.verify(token);
      if (caller === undefined || !(await deps.admit(caller))) return null;
      const { owner, accessToken, sessionId } = caller;
      return {
        kind: owner.kind,
        name: owner.name,
        groups: owner.kind === 'user' ? await deps.groupsOf(owner.name) : [],
        scopes: presentScopes(await scopesOf(caller)),
        session_id: sessionId ?? accessToken?.sessionId ?? null,
        token_id: accessToken?.id ?? null,
        token_expires_at: accessToken?.expiresAt?.getTime() ?? null,
      };
    },
    exchangeCode: (exchange) => deps.exchangeCode(deps.clientId, exchange),
  };
}
