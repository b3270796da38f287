import type { RoleStore } from '../rbac/role-store.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { User } from '../users/user-store.ts';
import type { UserDetails } from './user-model.ts';

/** Collects what the API tells about users from the stores that know it. */
export interface UserDirectory {
  detailsOf(user: User, options?: { readonly withStoppedServers: boolean }): Promise<UserDetails>;
}

/** Creates the directory. */
export function createUserDirectory(parts: {
  readonly groups: Pick<GroupStore, 'groupNamesOf'>;
  readonly roles: Pick<RoleStore, 'heldBy'>;
  readonly serverModelsOf: (userName: string) => Promise<UserDetails['servers']>;
}): UserDirectory {
  return {
    async detailsOf(user, { withStoppedServers } = { withStoppedServers: false }) {
      const groups = await parts.groups.groupNamesOf(user.name);
      const holder = {
        kind: 'user',
        name: user.name,
        isAdmin: user.isAdmin,
        groupNames: groups,
      } as const;
      const [roles, servers] = await Promise.all([
        parts.roles.heldBy(holder),
        parts.serverModelsOf(user.name),
      ]);
      const shown = Object.entries(servers).filter(
        ([, { stopped }]) => withStoppedServers || !stopped,
      );
      return {
        user,
        groups: [...groups].sort(),
        roles: roles.map(({ name }) => name),
        servers: Object.fromEntries(shown),
      };
    },
  };
}
