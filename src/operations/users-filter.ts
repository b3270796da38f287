import {
  type ListFilter,
  listedUserNames,
  listFilter,
  userNamesFor,
} from '../identity/rbac/access-check.ts';
import type { Caller } from '../identity/rbac/caller.ts';
import type { Membership } from '../identity/rbac/membership.ts';
import { requireAccess } from '../identity/rbac/require-access.ts';
import type { ScopeSet } from '../identity/rbac/scope.ts';
import type { UserFilter, UserStatus } from '../identity/users/user-filters-store.ts';
import type { UsersQuery } from './users-query.ts';

/** What must be held for each user of a list to see, sort by or ask for a part of what is known of them. */
const scopeByPart = {
  account: 'read:users',
  activity: 'read:users:activity',
  groups: 'read:users:groups',
  servers: 'read:servers',
} as const;

type UserPart = keyof typeof scopeByPart;

/** What a caller may know of every user whom the list shows. */
export type KnownOfUsers = Readonly<Record<UserPart, boolean>>;

export const fieldByStatus: Readonly<Record<UserStatus, UserPart>> = {
  running: 'servers',
  starting: 'servers',
  failed: 'servers',
  never_active: 'activity',
  administrator: 'account',
  suspended: 'account',
};

const partBySort: Readonly<Partial<Record<UsersQuery['sort'], UserPart>>> = {
  created: 'account',
  '-created': 'account',
  activity: 'activity',
  '-activity': 'activity',
  server: 'servers',
  '-server': 'servers',
};

export function knownOfUsers(scopes: ScopeSet): KnownOfUsers {
  const listed = listFilter(scopes, 'list:users');
  const isKnown = (part: UserPart) => includes(listFilter(scopes, scopeByPart[part]), listed);
  return {
    account: isKnown('account'),
    activity: isKnown('activity'),
    groups: isKnown('groups'),
    servers: isKnown('servers'),
  };
}

function includes(
  wide: ReturnType<typeof listFilter>,
  narrow: ReturnType<typeof listFilter>,
): boolean {
  if (wide === 'all') return true;
  if (wide === undefined || narrow === undefined || narrow === 'all') return false;
  const kinds: readonly (keyof ListFilter)[] = ['users', 'groups'];
  return kinds.every((kind) => narrow[kind].isSubsetOf(wide[kind]));
}

/**
 * The users that a caller may see of those that are asked for. Throws `forbidden` where which of them are found, or in
 * which order, would tell what the caller may not know.
 */
export function usersFilterFor(
  { scopes }: Pick<Caller, 'scopes'>,
  membership: Membership,
  { search, status, group, sort }: UsersQuery,
): UserFilter {
  const listed = listFilter(scopes, 'list:users');
  const known = knownOfUsers(scopes);
  const asked = [status && fieldByStatus[status], group && ('groups' as const), partBySort[sort]];
  for (const part of asked)
    if (part && !known[part]) requireAccess(scopes, [scopeByPart[part]], membership);
  return {
    nameFilter: search,
    searchesInfoOf: userNamesFor(scopes, 'read:users:info', membership),
    status,
    groupName: group,
    ...(listed !== 'all' && { onlyNames: listed ? listedUserNames(listed, membership) : [] }),
  };
}
