import type { Logger } from 'pino';
import { canonicalUserName } from '../authentication/user-name-rules.ts';
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
  const ensureUser = async (written: string) => {
    const name = canonicalUserName(written);
    const user = (await users.findByName(name)) ?? (await users.create({ name }));
    return user.name;
  };
  const ensureGroup = async (name: string) => {
    const group =
      (await groups.findByName(name)) ?? (await groups.create({ name, origin: 'config' }));
    return group.name;
  };

  const configuredGroups = await Promise.all(
    Hub.load_groups.map(async (group) => ({
      ...group,
      users: await Promise.all(group.users.map(ensureUser)),
    })),
  );
  await groups.syncConfigured(configuredGroups);
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
