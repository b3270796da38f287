import type { GroupStore } from '../../users/group-store.ts';
import { noInfo } from '../../users/user-info.ts';
import type { UserInfoStore } from '../../users/user-info-store.ts';
import type { User } from '../../users/user-store.ts';

/** What a client asks for to be an OpenID Connect one (Core 1.0 §3.1.2.1). */
export const openidScope = 'openid';

/** The claims about a user that each scope of OpenID Connect asks for (Core 1.0 §5.4), and the groups. */
const claimsByScope: Readonly<Record<string, readonly string[]>> = {
  [openidScope]: [],
  profile: ['name', 'preferred_username', 'picture'],
  email: ['email', 'email_verified'],
  groups: ['groups'],
};

export const openidScopes: readonly string[] = Object.keys(claimsByScope);
export const userClaimNames: readonly string[] = ['sub', ...Object.values(claimsByScope).flat()];

/** What a user must hold to have the other claims disclosed. */
export const userInfoScope = 'read:users:info!user';

/** A claim as a token has it among its scopes; none of the hub is called so. */
const grantOf = (claim: string) => `${openidScope}:${claim}`;

/** Whether a scope of a token stands for OpenID Connect or for a claim of it. */
export function isOpenidGrant(scope: string): boolean {
  return scope === openidScope || scope.startsWith(grantOf(''));
}

/** What scopes of the protocol and single claims (§5.5) come to. `hasInfo`: whether more than names may be disclosed. */
export function openidGrants(
  scopes: readonly string[],
  claims: readonly string[],
  hasInfo: boolean,
): string[] {
  const asked = Object.entries(claimsByScope).flatMap(([scope, names]) =>
    names.filter((name) => scopes.includes(scope) || claims.includes(name)),
  );
  const disclosed = hasInfo ? asked : asked.filter((name) => !needsInfo(name));
  return [openidScope, ...disclosed.map(grantOf)];
}

/** Whether a grant tells more than the name and the groups of a user. */
export function tellsInfo(grants: readonly string[]): boolean {
  return grants.some((grant) => isOpenidGrant(grant) && needsInfo(grant.split(':')[1] ?? ''));
}

/** The scopes of the protocol whose claims a token has all. */
export function openidScopesOf(granted: readonly string[]): string[] {
  return Object.entries(claimsByScope)
    .filter(([, claims]) => claims.every((claim) => granted.includes(grantOf(claim))))
    .map(([scope]) => scope);
}

/** The claims about a user (Core 1.0 §5.1) that a token with these scopes may learn. */
export type UserClaims = (
  user: Pick<User, 'id' | 'name'>,
  scopes: readonly string[],
) => Promise<Readonly<Record<string, unknown>>>;

/** One place for ID tokens and UserInfo. `sub` is the id: it stays when a user gets another name. */
export function createUserClaims(deps: {
  readonly userInfo: Pick<UserInfoStore, 'of'>;
  readonly groups: Pick<GroupStore, 'groupNamesByUser'>;
}): UserClaims {
  // By the id: what is known of a caller may be of before a rename, and the name another user's by now.
  const groupsOf = async (id: string) => (await deps.groups.groupNamesByUser([id])).get(id) ?? [];

  return async (user, scopes) => {
    const may = (claim: string) => scopes.includes(grantOf(claim));
    const info = tellsInfo(scopes) ? await deps.userInfo.of(user.id) : noInfo;
    const { displayName, email, isEmailVerified, pictureUrl } = info;
    const known = {
      name: displayName,
      preferred_username: user.name,
      picture: pictureUrl,
      email,
      email_verified: email === undefined ? undefined : isEmailVerified,
      groups: may('groups') ? (await groupsOf(user.id)).toSorted() : undefined,
    };
    const disclosed = Object.entries(known).filter(
      ([claim, value]) => value !== undefined && may(claim),
    );
    return { sub: user.id, ...Object.fromEntries(disclosed) };
  };
}

function needsInfo(claim: string): boolean {
  return claim !== '' && claim !== 'preferred_username' && claim !== 'groups';
}
