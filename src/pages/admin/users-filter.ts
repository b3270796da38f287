import { listedUserNames, listFilter, userNamesFor } from '../../rbac/access-check.ts';
import type { UserFilter } from '../../users/user-filters-store.ts';
import type { Admin } from './admin-context.ts';
import type { UsersQuery } from './users-query.ts';

/** The users that an administrator may see of those that are asked for. Throws as `Admin.require` does. */
export function usersFilterFor(who: Admin, { search, mark, group }: UsersQuery): UserFilter {
  const { scopes } = who.caller;
  const listed = listFilter(scopes, 'list:users');
  if (listed === undefined) who.require('list:users');
  return {
    nameFilter: search,
    searchesInfoOf: userNamesFor(scopes, 'read:users:info', who.membership),
    mark,
    groupName: group,
    ...(listed !== undefined &&
      listed !== 'all' && { onlyNames: listedUserNames(listed, who.membership) }),
  };
}
