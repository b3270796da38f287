import { z } from 'zod';
import {
  type Caller,
  type ListFilter,
  listedUserNames,
  listFilter,
  requireAccess,
  userNamesFor,
} from '../identity/rbac/access-check.ts';
import type { Membership } from '../identity/rbac/membership.ts';
import type { ScopeSet } from '../identity/rbac/scope.ts';
import {
  type UserFilter,
  type UserStatus,
  userStatuses,
} from '../identity/users/user-filters-store.ts';
import type { UserSort } from '../identity/users/user-pages-store.ts';
import type { PageAsked, PageEdge } from '../platform/store/page-edge.ts';

/** Rows on a page of groups, members, holders or shares. */
export const pageLength = 50;
const maxSearchLength = 255;
const maxKeyLength = 300;

const text = z.preprocess((given) => (typeof given === 'string' ? given : ''), z.string());
/** What was searched for, trimmed and no longer than a name. */
export const searchText = text.transform((given) => given.trim().slice(0, maxSearchLength));
const key = z.preprocess(
  (given) => (typeof given === 'string' && given.length <= maxKeyLength ? given : undefined),
  z.string().optional(),
);

/** The query of a page with a list: what was searched for, and which page of it. What cannot be read is left out. */
export const listQuery = z.object({
  search: searchText,
  after: key,
  before: key,
});

export type ListQuery = z.output<typeof listQuery>;

/** The row that a page borders on; undefined for the first page. */
export function edgeOf({
  after,
  before,
}: Pick<ListQuery, 'after' | 'before'>): PageEdge | undefined {
  if (after !== undefined) return { side: 'after', key: after };
  if (before !== undefined) return { side: 'before', key: before };
  return undefined;
}

/** The same as fields of an address or a form. The prefix is that of the list's fields. */
export function edgeFields(edge: PageEdge | undefined, prefix = ''): Record<string, string> {
  return edge === undefined ? {} : { [prefix + edge.side]: edge.key };
}

/** What stores are asked for. */
export function listOptionsOf(query: ListQuery): PageAsked & { readonly nameFilter: string } {
  return { nameFilter: query.search, limit: pageLength, edge: edgeOf(query) };
}

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
  invited: 'account',
  invitation_expiring: 'account',
  invitation_expired: 'account',
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
const usualSize = 50;

/** The list as it is first shown. */
export const usualUsers: UsersQuery = {
  search: '',
  status: undefined,
  group: undefined,
  sort: 'name',
  size: usualSize,
};

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

/** What the fields of an address or form ask for. */
export function readUsersQuery(given: URLSearchParams): UsersQuery {
  return usersQueryOf(usersQuery.parse(Object.fromEntries(given)));
}

/** The same as fields: what an address has to say beyond the usual. */
export function usersFields({ search, status, group, sort, edge, size }: UsersQuery) {
  return {
    search: search || undefined,
    show: status,
    group,
    sort: sort === usualUsers.sort ? undefined : sort,
    size: size === usualUsers.size ? undefined : String(size),
    ...edgeFields(edge),
  };
}

/** The page and order of a query, as the store takes them. */
export function storeOptionsOf({ sort, edge, size }: UsersQuery) {
  return { sort: storeSorts[sort], limit: size, edge };
}
