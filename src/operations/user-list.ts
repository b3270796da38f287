import { z } from 'zod';
import type { LoadReader } from '../cluster/instances/load-reader.ts';
import { maxNewUsers } from '../identity/accounts/accounts.ts';
import type { Invitations } from '../identity/accounts/invitations.ts';
import type { Caller } from '../identity/rbac/access-check.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { GroupStore } from '../identity/users/group-store.ts';
import type { InvitationStore, ListedInvitation } from '../identity/users/invitation-store.ts';
import type { UserFilter } from '../identity/users/user-filters-store.ts';
import { noInfo } from '../identity/users/user-info.ts';
import type { UserInfoStore } from '../identity/users/user-info-store.ts';
import type { User, UserStore } from '../identity/users/user-store.ts';
import { loadKeys } from '../platform/metrics/load-history.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import type { UserServers } from '../workloads/servers/user-servers.ts';
import { names } from './models.ts';
import { type OperationRequest, operation, view } from './operation.ts';
import {
  knownOfUsers,
  storeOptionsOf,
  type UsersQuery,
  usersFilterFor,
  usersQuery,
  usersQueryOf,
} from './users-query.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'list' | 'countByStatus' | 'listNames'>;
  readonly authorizer: Pick<Authorizer, 'membershipFor'>;
  readonly userInfo: Pick<UserInfoStore, 'ofAll'>;
  readonly serverStore: Pick<ServerStore, 'listByUser'>;
  readonly servers: Pick<UserServers, 'prefixOf' | 'isConfigured'>;
  readonly loads: Pick<LoadReader, 'readHere'>;
  readonly groups: Pick<GroupStore, 'groupNamesByUser'>;
  readonly invitations: Pick<Invitations, 'isUsed'>;
  readonly invitationStore: Pick<InvitationStore, 'listByUser'>;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
}

/** Of all that match. */
const maxMatching = 200_000;

/** The list of users, and more of them. */
export const userListOperations = [
  view({
    id: 'viewUsers',
    path: '/admin/users',
    scopes: ['list:users'],
    target: 'users',
    query: usersQuery,
  }).handle(async ({ query: asked, caller, may }, deps: Deps) => {
    const query = usersQueryOf(asked);
    const filter = await filterFor(query, caller, deps);
    const counts = await deps.users.countByStatus(filter);
    const knownTotal = counts[query.status ?? 'all'];
    const found = await deps.users.list({ ...filter, ...storeOptionsOf(query), knownTotal });
    return {
      query,
      counts,
      found,
      rows: await rowsOf(found.items, may, deps),
      known: knownOfUsers(caller.scopes),
      /** Whether accounts have a password here, so that a link to choose one makes sense. */
      canInvite: deps.invitations.isUsed,
      canStart: deps.servers.isConfigured,
    };
  }),
  view({
    id: 'viewMatchingUsers',
    path: '/admin/act-on-users',
    scopes: ['list:users'],
    target: 'users',
    query: usersQuery,
  }).handle(async ({ query, caller }, deps: Deps) => {
    const filter = await filterFor(usersQueryOf(query), caller, deps);
    return deps.users.listNames(filter, maxMatching);
  }),
  view({ id: 'viewNewUsers', path: '/admin/new-users', scopes: ['admin:users'] }).handle(
    () => ({}),
  ),
  operation({
    id: 'writeLinks',
    audience: 'page',
    method: 'POST',
    path: '/admin/links.csv',
    audit: { none: 'It writes what the page has as a file.' },
    tag: 'users',
    summary: 'Write new links as rows of a file',
    scopes: ['admin:users'],
    target: 'users',
    body: z.object({ links: z.string().describe('On each line a name, a tab and a link.') }),
    answers: { 200: { description: 'The rows.', schema: z.array(names) } },
  }).handle(({ body }) => {
    const lines = body.links.split(/\r?\n/).filter((line) => line !== '');
    const rows = lines.slice(0, maxNewUsers).map((line) => line.split('\t').slice(0, 2));
    return { status: 200, body: rows };
  }),
];

async function filterFor(
  query: UsersQuery,
  caller: Caller,
  { authorizer }: Pick<Deps, 'authorizer'>,
): Promise<UserFilter> {
  return usersFilterFor(caller, await authorizer.membershipFor(caller.scopes), query);
}

/** What may be known of each; one query for each thing, however many users there are. */
async function rowsOf(listed: readonly User[], may: OperationRequest<never>['may'], deps: Deps) {
  const mayOf = (scope: string, name: string) => may(scope, { kind: 'user', name });
  const those = (scope: string) =>
    listed.filter(({ name }) => mayOf(scope, name)).map(({ id }) => id);
  const [servers, infos, invitations, groups] = await Promise.all([
    deps.serverStore.listByUser(those('read:servers')),
    deps.userInfo.ofAll(those('read:users:info')),
    deps.invitationStore.listByUser(those('read:users'), new Date(deps.now())),
    deps.groups.groupNamesByUser(those('read:users:groups')),
  ]);
  return listed.map(({ id, name, isAdmin, isSuspended, createdAt, lastActivityAt }) => {
    const isRead = mayOf('read:users', name);
    const { displayName, email } = infos.get(id) ?? noInfo;
    return {
      name,
      displayName,
      email,
      isAdmin: isAdmin && isRead,
      isSuspended: isSuspended && isRead,
      invitation: invitationIn(invitations.get(id), lastActivityAt),
      groups: groups.get(id),
      createdAt: isRead ? createdAt : undefined,
      lastActivityAt: mayOf('read:users:activity', name) ? lastActivityAt : undefined,
      servers: (servers.get(id) ?? []).map((server) => ({
        server,
        prefix: deps.servers.prefixOf(server),
        load: server.name === '' ? deps.loads.readHere(loadKeys.server(server.id)) : undefined,
      })),
      mayOpenServer: may('access:servers', { kind: 'server', userName: name, serverName: '' }),
    };
  });
}

/** What of a user's invitation is still to be done: none that was used, nor one that is not needed. */
function invitationIn(
  listed: readonly ListedInvitation[] = [],
  lastActivityAt: Date | undefined,
): 'sent' | 'expired' | undefined {
  const state = listed.find(({ purpose }) => purpose === 'invitation')?.state;
  if (state === 'sent') return state;
  return state === 'expired' && lastActivityAt === undefined ? state : undefined;
}
