import { z } from 'zod';
import { listFilter } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { GroupPages } from '../identity/users/group-pages-store.ts';
import type { UserInfoStore } from '../identity/users/user-info-store.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { openServices, type ServiceDeps } from './home-page.ts';
import { view } from './operation.ts';
import { ownUserOf } from './own-user.ts';
import { searchText, usersFilterFor, usersQuery, usersQueryOf } from './users-query.ts';

export interface Deps extends ServiceDeps {
  readonly users: Pick<UserStore, 'list'>;
  readonly groupPages: Pick<GroupPages, 'listGroups'>;
  readonly userInfo: Pick<UserInfoStore, 'ofAll'>;
  readonly serverStore: Pick<ServerStore, 'listByUser'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
}

/** Most results of one kind. */
export const maxFound = 8;

/** One search of everything that has a page: the same few queries, whatever is found. */
export const searchOperations = [
  view({
    id: 'viewSearch',
    path: '/search',
    scopes: 'authenticated',
    query: z.object({ search: searchText }),
  }).handle(async ({ caller, query: { search }, may }, deps: Deps) => {
    const own = ownUserOf(caller);
    const users = async () => {
      const seesUsers = may('admin-ui') && listFilter(caller.scopes, 'list:users') !== undefined;
      if (search === '' || !seesUsers) return [];
      const membership = await deps.authorizer.membershipFor(caller.scopes);
      const query = usersQueryOf(usersQuery.parse({ search, sort: 'name' }));
      const filter = usersFilterFor(caller, membership, query);
      return (await deps.users.list({ ...filter, limit: maxFound })).items;
    };
    const groups = async () => {
      const listed = listFilter(caller.scopes, 'list:groups');
      if (search === '' || !may('admin-ui') || listed === undefined) return [];
      const onlyNames = listed === 'all' ? undefined : [...listed.groups];
      const page = { nameFilter: search, onlyNames, limit: maxFound };
      return (await deps.groupPages.listGroups(page)).items;
    };
    const [found, foundGroups, services] = await Promise.all([
      users(),
      groups(),
      openServices(own, may, deps),
    ]);
    const ids = [...new Set([own.id, ...found.map(({ id }) => id)])];
    const [servers, infos] = await Promise.all([
      deps.serverStore.listByUser(ids),
      deps.userInfo.ofAll(ids),
    ]);
    return {
      search,
      users: found.map(({ id, name }) => ({
        name,
        displayName: may('read:users:info', { kind: 'user', name })
          ? infos.get(id)?.displayName
          : undefined,
      })),
      groups: foundGroups.map(({ name }) => name),
      /** Of the caller, and of the users who were found. */
      servers: ids.flatMap((id) => servers.get(id) ?? []),
      /** All that the caller may open. */
      services,
    };
  }),
];
