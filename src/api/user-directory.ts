import type { RoleHolder } from '../rbac/role.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { User } from '../users/user-store.ts';
import type { UserDetails } from './user-model.ts';

/** Collects what the API tells about users from the stores that know it. */
export interface UserDirectory {
  detailsOf(user: User, options?: DetailOptions): Promise<UserDetails>;
  /** The details of many, in their order: a fixed number of queries, however many there are. */
  detailsOfAll(users: readonly User[], options?: DetailOptions): Promise<UserDetails[]>;
}

interface DetailOptions {
  /** Whether servers that are stopped are listed too; they are not by default. */
  readonly withStoppedServers: boolean;
}

/** Creates the directory. */
export function createUserDirectory(deps: {
  readonly groups: Pick<GroupStore, 'groupNamesByUser'>;
  readonly roles: Pick<RoleStore, 'namesHeldBy'>;
  /** Models of servers by the id of their user. */
  readonly serverModelsByUser: (
    userIds: readonly string[],
    options: { readonly withStopped: boolean },
  ) => Promise<ReadonlyMap<string, UserDetails['servers']>>;
}): UserDirectory {
  async function loadFacts(
    users: readonly User[],
    { withStoppedServers } = { withStoppedServers: false },
  ) {
    const ids = users.map(({ id }) => id);
    const [groupNames, servers] = await Promise.all([
      deps.groups.groupNamesByUser(ids),
      deps.serverModelsByUser(ids, { withStopped: withStoppedServers }),
    ]);
    const roleNames = await deps.roles.namesHeldBy(
      users.map(
        ({ id, name, isAdmin }): RoleHolder => ({
          kind: 'user',
          name,
          isAdmin,
          groupNames: groupNames.get(id) ?? [],
        }),
      ),
    );
    return (user: User): UserDetails => ({
      user,
      groups: groupNames.get(user.id) ?? [],
      roles: roleNames.get(user.name) ?? [],
      servers: servers.get(user.id) ?? {},
    });
  }

  return {
    detailsOf: async (user, options) => (await loadFacts([user], options))(user),
    detailsOfAll: async (users, options) => users.map(await loadFacts(users, options)),
  };
}
