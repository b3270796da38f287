import type { PageEdge } from '../../store/page-edge.ts';
import { type UserMark, userMarks } from '../../users/user-filters-store.ts';
import type { UserSort } from '../../users/user-pages-store.ts';
import { edgeFields, edgeIn, pageNumberIn } from '../elements/paging.ts';
import type { PageUrls } from '../page-urls.ts';

/** Which part of the list of users a page shows, as its address says it. */
export interface UsersQuery {
  /** Part of a name; empty for any. */
  readonly search: string;
  readonly mark: UserMark | undefined;
  readonly group: string | undefined;
  readonly sort: UsersSort;
  /** From 1. */
  readonly page: number;
  /** Where the page borders on the one from which it was reached. */
  readonly edge?: PageEdge | undefined;
  readonly size: number;
}

export type UsersSort = keyof typeof storeSorts;

/** Each column in the order in which it is more often wanted; the minus turns it round. */
const storeSorts = {
  name: 'name',
  '-name': '-name',
  created: '-created',
  '-created': 'created',
  activity: '-lastActivity',
  '-activity': 'lastActivity',
  server: 'server',
  '-server': '-server',
} as const satisfies Record<string, UserSort>;

/** More would make a page of more than 100 KiB. */
export const pageSizes = [10, 25, 50] as const;
const usualSize = 50;
const longestName = 255;

/** What an address or form asks for; anything that cannot be is taken as not said. */
export function readUsersQuery(given: URLSearchParams): UsersQuery {
  const text = (name: string) => (given.get(name) ?? '').slice(0, longestName);
  const sort = text('sort');
  const edge = edgeIn(given);
  return {
    search: text('search').trim(),
    mark: userMarks.find((mark) => mark === text('show')),
    group: text('group').trim() || undefined,
    sort: Object.hasOwn(storeSorts, sort) ? (sort as UsersSort) : 'name',
    page: pageNumberIn(given),
    ...(edge && { edge }),
    size: pageSizes.find((offered) => String(offered) === text('size')) ?? usualSize,
  };
}

/** What an address has to say beyond the usual. */
export function usersFields(query: UsersQuery): Record<string, string | undefined> {
  const { search, mark, group, sort, page, edge, size } = query;
  return {
    search: search || undefined,
    show: mark,
    group,
    sort: sort === 'name' ? undefined : sort,
    size: size === usualSize ? undefined : String(size),
    page: page === 1 ? undefined : String(page),
    ...edgeFields(edge),
  };
}

/** The beginning of a list. */
export const firstPage = { page: 1, edge: undefined } as const;

/** All users of a group, in pages of the same size. */
export function queryOfGroup(group: string, { size }: UsersQuery): UsersQuery {
  return { search: '', mark: undefined, group, sort: 'name', size, ...firstPage };
}

/** The address of a part of the list. */
export function usersUrl(urls: Pick<PageUrls, 'admin'>, query: UsersQuery): string {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(usersFields(query))) {
    if (value !== undefined) said.set(name, value);
  }
  return said.size === 0 ? urls.admin : `${urls.admin}?${said}`;
}

/** The page and order of a query, as the store takes them. */
export function storeOptionsOf({ sort, page, edge, size }: UsersQuery) {
  return { sort: storeSorts[sort], offset: (page - 1) * size, limit: size, edge };
}
