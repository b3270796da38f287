import {
  type ListFilter,
  listedUserNames,
  listFilter,
  userNamesFor,
} from '../../rbac/access-check.ts';
import type { ScopeSet } from '../../rbac/scope.ts';
import type { UserFilter, UserMark } from '../../users/user-filters-store.ts';
import type { Admin } from './admin-context.ts';
import type { UsersQuery } from './users-query.ts';

/** What must be held for each user of a list to see, sort by or ask for a part of what is known of them. */
const scopeByPart = {
  account: 'read:users',
  activity: 'read:users:activity',
  groups: 'read:users:groups',
  servers: 'read:servers',
} as const;

type UserPart = keyof typeof scopeByPart;

/** What an administrator may know of every user whom the list shows. */
export type KnownOfUsers = Readonly<Record<UserPart, boolean>>;

export const partByMark: Readonly<Record<UserMark, UserPart>> = {
  running: 'servers',
  starting: 'servers',
  failed: 'servers',
  never_active: 'activity',
  administrator: 'account',
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
 * The users that an administrator may see of those that are asked for. Throws as `Admin.require` does, also where
 * which of them are found, or in which order, would tell what the administrator may not know.
 */
export function usersFilterFor(who: Admin, { search, mark, group, sort }: UsersQuery): UserFilter {
  const { scopes } = who.caller;
  const listed = listFilter(scopes, 'list:users');
  if (listed === undefined) who.require('list:users');
  const known = knownOfUsers(scopes);
  const asked = [mark && partByMark[mark], group && ('groups' as const), partBySort[sort]];
  for (const part of asked) if (part && !known[part]) who.require(scopeByPart[part]);
  return {
    nameFilter: search,
    searchesInfoOf: userNamesFor(scopes, 'read:users:info', who.membership),
    mark,
    groupName: group,
    ...(listed !== undefined &&
      listed !== 'all' && { onlyNames: listedUserNames(listed, who.membership) }),
  };
}
