import type { Logger } from 'pino';
import { canonicalUserName } from '../authentication/user-name-rules.ts';
import type { Config } from '../config/config.ts';
import { applyRoles } from '../rbac/load-roles.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { UserStore } from '../users/user-store.ts';

/**
 * Brings groups, roles and the users named in the configuration into the store. Runs at start and at
 * every reload.
 */
export async function loadDirectory(
  { Hub, Authenticator }: Pick<Config, 'Hub' | 'Authenticator'>,
  {
    users,
    groups,
    roles,
    catalogue,
    log,
  }: {
    readonly users: UserStore;
    readonly groups: GroupStore;
    readonly roles: RoleStore;
    readonly catalogue: ScopeCatalogue;
    readonly log: Logger;
  },
): Promise<void> {
  const ensureUser = async (written: string) =>
    (await users.ensure(canonicalUserName(written))).name;

  // Users who may log in can be given roles, groups and servers before they do.
  await users.createMissing(
    [...Authenticator.allowed_users, ...Authenticator.admin_users].map(canonicalUserName),
  );
  await groups.syncConfigured(
    Hub.load_groups.map((group) => ({ ...group, users: group.users.map(canonicalUserName) })),
    Hub.load_roles.flatMap((role) => role.groups ?? []),
  );
  await applyRoles(Hub.load_roles, {
    roles,
    catalogue,
    ensureUser,
    ensureGroup: async (name) => (await groups.getByName(name)).name,
    administrators: {
      list: () => users.listAdministratorNames(),
      async set(userName, isAdmin) {
        const user = await users.getByName(userName);
        await users.setAdmin(user.id, isAdmin);
      },
    },
    adminUsers: Authenticator.admin_users,
    managesRoles: Authenticator.manage_roles,
    log,
  });
  for (const name of Authenticator.admin_users) {
    const user = await users.getByName(canonicalUserName(name));
    if (!user.isAdmin) await users.setAdmin(user.id, true);
  }
}
