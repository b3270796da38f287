import { z } from 'zod';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import { userNamesFor } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { loadKeys } from '../platform/metrics/load-history.ts';
import {
  listedStates,
  type ServerListStore,
  type ServerSort,
  serverSorts,
} from '../workloads/servers/server-list-store.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { view } from './operation.ts';
import { edgeOf, listQuery, pageLength } from './users-query.ts';

export interface Deps {
  readonly serverList: ServerListStore;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly servers: Pick<UserServers, 'prefixOf'>;
  readonly loads: Pick<LoadReader, 'readHere'>;
}

const serversQuery = listQuery.extend({
  show: z.enum(listedStates).optional().catch(undefined),
  sort: z
    .enum(serverSorts.flatMap((column): ServerSort[] => [column, `-${column}`]))
    .catch('state'),
});

/** The servers of all users whose servers a caller may read; who lists no users needs no list of servers. */
export const serverListOperations = [
  view({
    id: 'viewServers',
    path: '/admin/servers',
    scopes: ['list:users'],
    target: 'users',
    query: serversQuery,
  }).handle(async ({ query, caller: { scopes } }, deps: Deps) => {
    const membership = await deps.authorizer.membershipFor(scopes);
    const userNames = userNamesFor(scopes, 'read:servers', membership);
    const filter = { search: query.search, state: query.show, userNames };
    const counts = await deps.serverList.count(filter);
    const found = await deps.serverList.list(filter, {
      limit: pageLength,
      edge: edgeOf(query),
      sort: query.sort,
      total: counts[query.show ?? 'all'],
    });
    const rows = found.items.map((server) => ({
      server,
      prefix: deps.servers.prefixOf(server),
      load: deps.loads.readHere(loadKeys.server(server.id)),
    }));
    return { query, counts, found, rows };
  }),
];
