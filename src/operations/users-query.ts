import { z } from 'zod';
import { type UserStatus, userStatuses } from '../identity/users/user-filters-store.ts';
import type { UserSort } from '../identity/users/user-pages-store.ts';
import type { PageEdge } from '../platform/store/page-edge.ts';
import { edgeOf, listQuery, searchText } from './list-query.ts';

/** Which part of the list of users a page shows, as its address says it. */
export interface UsersQuery {
  /** Part of a name; empty for any. */
  readonly search: string;
  readonly status: UserStatus | undefined;
  readonly group: string | undefined;
  readonly sort: UsersSort;
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
export const usualSize = 50;

/** The fields of an address or form; anything that cannot be is taken as not said. */
export const usersQuery = listQuery.extend({
  show: z.enum(userStatuses).optional().catch(undefined),
  group: searchText,
  sort: z.enum(Object.keys(storeSorts) as UsersSort[]).catch('name'),
  size: z.coerce.number().pipe(z.literal(pageSizes)).catch(usualSize),
});

export function usersQueryOf({
  show,
  group,
  after,
  before,
  ...query
}: z.output<typeof usersQuery>): UsersQuery {
  const edge = edgeOf({ after, before });
  return { ...query, status: show, group: group || undefined, ...(edge && { edge }) };
}

/** The page and order of a query, as the store takes them. */
export function storeOptionsOf({ sort, edge, size }: UsersQuery) {
  return { sort: storeSorts[sort], limit: size, edge };
}
