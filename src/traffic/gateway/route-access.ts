import type { LoginRevalidation } from '../../identity/authentication/user-refresh.ts';
import type { TokenVerifier } from '../../identity/oauth/tokens/token-verifier.ts';
import { type Caller, mayAccess } from '../../identity/rbac/access-check.ts';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import { type AccessTarget, accessScopeFor } from '../../platform/protocol/client-id.ts';

/** Decides who may use the service or server behind a guarded route, and may go on using it. */
export interface RouteAccess {
  /** The bearer of a token; undefined for a token that identifies no one who may be here at all. */
  identify(token: string): Promise<Caller | undefined>;
  /** As `identify`, for a token that was shown before, by its id. */
  findBearer(accessTokenId: string): Promise<Caller | undefined>;
  /** Whether a caller holds access to the target. */
  isGranted(caller: Caller, target: AccessTarget): Promise<boolean>;
  /** Whether the bearer of a token that was granted access has it still. */
  isStillGranted(accessTokenId: string, target: AccessTarget): Promise<boolean>;
}

export function createRouteAccess(deps: {
  readonly tokens: Pick<TokenVerifier, 'verify' | 'findBearer'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly revalidation: Pick<LoginRevalidation, 'hasCurrentLogin'>;
  /** Told of each user who comes. */
  readonly activity: { noteUser(userId: string): void };
}): RouteAccess {
  const { tokens, authorizer, revalidation } = deps;

  async function isGranted({ scopes }: Caller, target: AccessTarget): Promise<boolean> {
    const membership = await authorizer.membershipFor(scopes);
    return mayAccess(scopes, accessScopeFor(target), undefined, membership);
  }

  async function findBearer(accessTokenId: string): Promise<Caller | undefined> {
    const caller = await tokens.findBearer(accessTokenId);
    return caller !== undefined && (await revalidation.hasCurrentLogin(caller))
      ? caller
      : undefined;
  }

  return {
    isGranted,
    findBearer,

    async identify(token) {
      const caller = await tokens.verify(token);
      if (caller === undefined) return undefined;
      if (caller.user !== undefined) deps.activity.noteUser(caller.user.id);
      return (await revalidation.hasCurrentLogin(caller)) ? caller : undefined;
    },

    async isStillGranted(accessTokenId, target) {
      const caller = await findBearer(accessTokenId);
      return caller !== undefined && (await isGranted(caller, target));
    },
  };
}
