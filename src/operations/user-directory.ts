import type { RoleStore } from '../identity/rbac/role-store.ts';
import type { GroupStore } from '../identity/users/group-store.ts';
import { noInfo, type UserInfo } from '../identity/users/user-info.ts';
import type { UserInfoStore } from '../identity/users/user-info-store.ts';
import type { User } from '../identity/users/user-store.ts';
import { createBatchLoader } from '../platform/concurrency/batch-loader.ts';
import { type ChangeWatch, createChangeAwareCache } from '../platform/store/change-aware-cache.ts';
import type { UserDetails } from './user-model.ts';

/** Collects what the API tells about users from the stores that know it. */
export interface UserDirectory {
  detailsOf(user: User, options?: Pick<DetailOptions, 'withStoppedServers'>): Promise<UserDetails>;
  /** The details of many, in their order: a fixed number of queries, however many there are. */
  detailsOfAll(users: readonly User[], options?: DetailOptions): Promise<UserDetails[]>;
}

interface DetailOptions {
  /** Whether servers that are stopped are listed too; they are not by default. */
  readonly withStoppedServers: boolean;
  /** Whether the options of the servers are told; those of one user are by default, those of many are not. */
  readonly withUserOptions?: boolean;
}

/** What changes by none but announced changes, so that it can be remembered. */
type Holdings = Pick<UserDetails, 'groups' | 'roles' | 'created'>;

const cachedUsers = 10_000;

export function createUserDirectory(deps: {
  readonly groups: Pick<GroupStore, 'groupNamesByUser'>;
  readonly roles: Pick<RoleStore, 'namesGrantedTo'>;
  readonly userInfo: UserInfoStore;
  /** Models of servers by the id of their user. */
  readonly serverModelsByUser: (
    userIds: readonly string[],
    options: { readonly withStopped: boolean; readonly withUserOptions: boolean },
  ) => Promise<ReadonlyMap<string, UserDetails['servers']>>;
  readonly changes: ChangeWatch;
}): UserDirectory {
  const { groups, roles, userInfo, changes } = deps;
  const cached = createChangeAwareCache<Holdings>({ changes, max: cachedUsers });
  // With all that implicit roles and assignments depend on: the user may have been read before a change.
  const keyOf = ({ id, isAdmin, name }: User) => `${id} ${isAdmin} ${name}`;

  const allServersOf = createBatchLoader((userIds: readonly string[]) =>
    deps.serverModelsByUser(userIds, { withStopped: true, withUserOptions: true }),
  );
  const activeServersOf = createBatchLoader((userIds: readonly string[]) =>
    deps.serverModelsByUser(userIds, { withStopped: false, withUserOptions: true }),
  );

  async function holdingsOf(users: readonly User[]): Promise<ReadonlyMap<User, Holdings>> {
    const found = new Map<User, Holdings>();
    const unknown: User[] = [];
    for (const user of users) {
      const holdings = cached.get(keyOf(user));
      if (holdings === undefined) unknown.push(user);
      else found.set(user, holdings);
    }
    if (unknown.length > 0) await load(unknown, found);
    return found;
  }

  async function load(users: readonly User[], into: Map<User, Holdings>): Promise<void> {
    const beginning = cached.begin();
    const groupNames = await groups.groupNamesByUser(users.map(({ id }) => id));
    const roleNames = await roles.namesGrantedTo(
      // The roles of their groups stand with the groups, as clients of JupyterHub expect.
      users.map(({ name, isAdmin }) => ({ kind: 'user', name, isAdmin, groupNames: [] })),
    );
    for (const user of users) {
      const holdings = toHoldings(
        user,
        groupNames.get(user.id) ?? [],
        roleNames.get(user.name) ?? [],
      );
      cached.put(keyOf(user), holdings, beginning);
      into.set(user, holdings);
    }
  }

  async function loadDetails(
    users: readonly User[],
    { withStoppedServers, withUserOptions = false }: DetailOptions = { withStoppedServers: false },
  ): Promise<UserDetails[]> {
    const ids = users.map(({ id }) => id);
    const [holdings, infos, servers] = await Promise.all([
      holdingsOf(users),
      userInfo.ofAll(ids),
      deps.serverModelsByUser(ids, { withStopped: withStoppedServers, withUserOptions }),
    ]);
    return users.map((user) =>
      detailsFrom(user, holdings, infos.get(user.id) ?? noInfo, servers.get(user.id)),
    );
  }

  function detailsFrom(
    user: User,
    holdings: ReadonlyMap<User, Holdings>,
    info: UserInfo,
    servers: UserDetails['servers'] = {},
  ): UserDetails {
    const { groups, roles, created } = holdings.get(user) ?? toHoldings(user, [], []);
    return { user, groups, roles, created, info, servers };
  }

  return {
    async detailsOf(user, { withStoppedServers } = { withStoppedServers: false }) {
      const serversOf = withStoppedServers ? allServersOf : activeServersOf;
      const [holdings, info, servers] = await Promise.all([
        holdingsOf([user]),
        userInfo.of(user.id),
        serversOf(user.id),
      ]);
      return detailsFrom(user, holdings, info, servers);
    },
    detailsOfAll: loadDetails,
  };
}

function toHoldings(
  { createdAt }: User,
  groups: readonly string[],
  roles: readonly string[],
): Holdings {
  return { groups, roles, created: createdAt.toISOString() };
}
