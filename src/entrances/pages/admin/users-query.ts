import {
  type UsersQuery,
  usersQuery,
  usersQueryOf,
  usualSize,
} from '../../../operations/users-query.ts';
import { edgeFields } from '../elements/table.ts';
import type { PageUrls } from '../page-urls.ts';

/** What the fields of an address or form ask for. */
export function readUsersQuery(given: URLSearchParams): UsersQuery {
  return usersQueryOf(usersQuery.parse(Object.fromEntries(given)));
}

/** What an address has to say beyond the usual. */
export function usersFields(query: UsersQuery): Record<string, string | undefined> {
  const { search, status, group, sort, edge, size } = query;
  return {
    search: search || undefined,
    show: status,
    group,
    sort: sort === 'name' ? undefined : sort,
    size: size === usualSize ? undefined : String(size),
    ...edgeFields(edge),
  };
}

/** The list as it is first shown. */
export const usualUsers: UsersQuery = {
  search: '',
  status: undefined,
  group: undefined,
  sort: 'name',
  size: usualSize,
};

/** All users of a group, in pages of the same size. */
export function queryOfGroup(group: string, { size }: UsersQuery): UsersQuery {
  return { ...usualUsers, group, size };
}

/** The address of a part of the list. */
export function usersUrl(urls: Pick<PageUrls, 'adminUsers'>, query: UsersQuery): string {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(usersFields(query))) {
    if (value !== undefined) said.set(name, value);
  }
  return said.size === 0 ? urls.adminUsers : `${urls.adminUsers}?${said}`;
}
