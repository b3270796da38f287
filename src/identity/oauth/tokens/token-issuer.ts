import type { Config } from '../../../platform/config/config.ts';
import { HubError } from '../../../platform/errors.ts';
import { serverClientId } from '../../../platform/protocol/client-id.ts';
import { inSeconds } from '../../../platform/texts/seconds.ts';
import { message, text } from '../../../platform/texts/text.ts';
import { type Caller, excessScopes } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Owner } from '../../rbac/owner.ts';
import { grantableScopes } from '../../rbac/role.ts';
import { resolveScopes, type ScopeSet } from '../../rbac/scope.ts';
import type { User } from '../../users/user-store.ts';
import type { IssuedAccessToken, NewAccessToken } from './access-token.ts';
import type { AccessTokenStore } from './access-token-store.ts';
import { scopeError } from './scope-error.ts';

/** A request for a token made by hand, on the token page or through the API. */
export interface ApiTokenRequest {
  readonly owner:
    | { readonly kind: 'user'; readonly user: Pick<User, 'id' | 'name'> }
    | { readonly kind: 'service'; readonly name: string };
  /** Everything the owner may do, unless given. */
  readonly scopes?: readonly string[];
  readonly note: string;
  /** Undefined for a token that does not expire. */
  readonly expiresInSeconds?: number;
  /** Who asks: what they hold is the most the token may get. */
  readonly granter: Pick<Caller, 'owner' | 'scopes' | 'accessToken'>;
}

/** A server whose own token is made. */
export interface ServerTokenRequest {
  readonly user: Pick<User, 'id' | 'name'>;
  readonly server: { readonly id: string; readonly name: string };
  readonly scopes: readonly string[];
}

/** Issues access tokens that do not come from an authorization code. */
export interface TokenIssuer {
  /**
   * Creates a token that never outlives the one it is made with: it expires with that one at the latest,
   * and ends when that one is revoked or the login that it hangs on ends. Throws `bad_request` for an unknown scope, for scopes beyond those of the owner and for a lifetime
   * that is not possible, `forbidden` for scopes beyond those of the granter, and `conflict` for an owner
   * who has as many tokens as are allowed.
   */
  createApiToken(request: ApiTokenRequest): Promise<IssuedAccessToken>;
  /** The token a server starts with, which is its client secret too; earlier ones end. */
  createServerToken(request: ServerTokenRequest): Promise<IssuedAccessToken>;
}

/** Characters of a note that are kept. */
export const maxNoteLength = 500;

/** A longest lifetime of 0 means that tokens may last for ever, a limit of 0 that there is none. */
export function createTokenIssuer({
  accessTokens,
  authorizer,
  settings = {},
  now = Date.now,
}: {
  readonly accessTokens: Pick<AccessTokenStore, 'create' | 'createWithin' | 'revokeByServer'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner' | 'membership' | 'catalogue'>;
  readonly settings?: Partial<
    Pick<Config['Hub'], 'token_expires_in_max_seconds' | 'api_token_limit_per_user'>
  >;
  readonly now?: () => number;
}): TokenIssuer {
  const {
    token_expires_in_max_seconds: maxLifetimeSeconds = 0,
    api_token_limit_per_user: limitPerUser = 0,
  } = settings;
  const expiryOf = (expiresInSeconds: number | undefined): Date | undefined => {
    if (expiresInSeconds === undefined && maxLifetimeSeconds === 0) return undefined;
    const lifetimeSeconds = expiresInSeconds ?? maxLifetimeSeconds;
    if (!Number.isSafeInteger(lifetimeSeconds) || lifetimeSeconds <= 0) {
      throw new HubError(
        'bad_request',
        text`The lifetime of a token must be a positive number of seconds.`,
      );
    }
    if (maxLifetimeSeconds > 0 && lifetimeSeconds > maxLifetimeSeconds) {
      throw new HubError(
        'bad_request',
        text`Tokens of this hub last ${inSeconds(maxLifetimeSeconds)} at most.`,
      );
    }
    const expiresAt = new Date(now() + lifetimeSeconds * 1000);
    if (Number.isNaN(expiresAt.getTime())) {
      throw new HubError('bad_request', text`The lifetime of the token is too long.`);
    }
    return expiresAt;
  };

  async function requireGrantable(
    scopes: readonly string[],
    owner: Owner,
    granter: ApiTokenRequest['granter'],
  ): Promise<void> {
    const { catalogue } = authorizer;
    const [inherited, membership] = await Promise.all([
      authorizer.scopesOfOwner(owner),
      authorizer.membership(),
    ]);
    const client = owner.kind === 'service' ? { clientId: '', service: owner.name } : undefined;
    const expand = (texts: readonly string[]) =>
      resolveScopes(texts, { catalogue, owner, client, inherited });
    const { unresolved } = expand(scopes);
    const isForThemselves = granter.owner.kind === owner.kind && granter.owner.name === owner.name;
    const excessOf = (grantedScopes: ScopeSet) =>
      scopes.filter(
        (text) => excessScopes(grantedScopes, expand([text]).scopes, membership).length > 0,
      );
    if (unresolved.length > 0) {
      const excess = isForThemselves ? excessOf(inherited) : [];
      throw scopeError('bad_request', {
        unknown: unresolved,
        excess,
        whose: 'yours',
        grantedScopes: isForThemselves ? inherited : undefined,
        catalogue,
      });
    }
    const requireWithin = (
      grantedScopes: ScopeSet,
      code: 'bad_request' | 'forbidden',
      whose: 'yours' | "the owner's",
    ) => {
      const excess = excessOf(grantedScopes);
      if (excess.length === 0) return;
      const shown = isForThemselves ? grantedScopes : undefined;
      throw scopeError(code, { unknown: [], excess, whose, grantedScopes: shown, catalogue });
    };
    if (isForThemselves) requireWithin(inherited, 'bad_request', 'yours');
    // First: what others may do is nothing to be tried out by those who may do less.
    const grantable = isForThemselves ? granter.scopes : grantableScopes(granter.scopes, catalogue);
    requireWithin(grantable, 'forbidden', 'yours');
    requireWithin(inherited, 'bad_request', "the owner's");
  }

  return {
    async createApiToken({ owner, scopes = ['inherit'], note, expiresInSeconds, granter }) {
      const expiresAt = earlier(expiryOf(expiresInSeconds), granter.accessToken?.expiresAt);
      const { sessionId } = granter.accessToken ?? {};
      const name = owner.kind === 'user' ? owner.user.name : owner.name;
      await requireGrantable(scopes, { kind: owner.kind, name }, granter);
      const token: NewAccessToken = {
        owner:
          owner.kind === 'user'
            ? { kind: 'user', userId: owner.user.id, userName: name }
            : { kind: 'service', serviceName: owner.name },
        scopes: [...new Set(scopes)],
        note: note.slice(0, maxNoteLength),
        ...(expiresAt !== undefined && { expiresAt }),
        ...(sessionId !== undefined && { sessionId }),
        ...(granter.accessToken !== undefined && { madeBy: granter.accessToken.id }),
      };
      const issued =
        owner.kind === 'user' && limitPerUser > 0
          ? await accessTokens.createWithin(limitPerUser, owner.user.id, token)
          : await accessTokens.create(token);
      if (issued === undefined) throw tooManyTokens(limitPerUser, name, granter.owner);
      return issued;
    },

    async createServerToken({ user, server, scopes }) {
      await accessTokens.revokeByServer(server.id);
      return await accessTokens.create({
        owner: { kind: 'user', userId: user.id },
        serverId: server.id,
        scopes,
        note: `Server at ${serverClientId(user.name, server.name)}`,
      });
    },
  };
}

function tooManyTokens(limit: number, name: string, granter: Owner): HubError {
  const isOwn = granter.kind === 'user' && granter.name === name;
  return new HubError(
    'conflict',
    isOwn
      ? message(
          '{limit, plural, one {You have # API token, the most that a user may have here.} other {You have # API tokens, the most that a user may have here.}}',
          { limit },
        )
      : message(
          '{limit, plural, one {{name} has # API token, the most that a user may have here.} other {{name} has # API tokens, the most that a user may have here.}}',
          { limit, name },
        ),
    {
      hint: isOwn
        ? text`Revoke one that you no longer need.`
        : text`Revoke one that is no longer needed, under Tokens or with DELETE /hub/api/users/${encodeURIComponent(name)}/tokens/ID.`,
    },
  );
}

function earlier(left: Date | undefined, right: Date | undefined): Date | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return left < right ? left : right;
}
