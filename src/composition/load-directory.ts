import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import { applyRoles } from '../rbac/load-roles.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { Stores } from './stores.ts';

/**
 * Brings groups, roles and administrators of the configuration into the store. Runs at start and at
 * every reload.
 */
export async function loadDirectory(
  config: Config,
  stores: Stores,
  catalogue: ScopeCatalogue,
  log: Logger,
): Promise<void> {
  const { Hub, Authenticator } = config;
  const { users, groups, roles } = stores;
  const ensureUser = async (name: string) => {
    const user = (await users.findByName(name)) ?? (await users.create({ name }));
    return user.name;
  };
  const ensureGroup = async (name: string) => {
    const group = (await groups.findByName(name)) ?? (await groups.create({ name, origin: 'config' }));
    return group.name;
  };

  for (const { users: members } of Hub.load_groups) {
    for (const member of members) await ensureUser(member);
  }
  await groups.syncConfigured(Hub.load_groups);
  await applyRoles(Hub.load_roles, {
    roles,
    catalogue,
    ensureUser,
    ensureGroup,
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
    const user = await users.getByName(await ensureUser(name));
    if (!user.isAdmin) await users.setAdmin(user.id, true);
  }
}
