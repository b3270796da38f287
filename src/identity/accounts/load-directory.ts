import type { Logger } from 'pino';
import type { Config } from '../../platform/config/config.ts';
import { canonicalUserName } from '../authentication/user-name-rules.ts';
import { applyRoles } from '../rbac/load-roles.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { User, UserStore } from '../users/user-store.ts';

/** Who may do more than before: in words, such as `ops to group staff (gina)`. */
export interface GivenRights {
  readonly roles: readonly string[];
  /** New members of groups, such as `board (eve)`. */
  readonly members: readonly string[];
}

/**
 * Brings groups, roles and the users named in the configuration into the store. Runs at start and at
 * every reload. Says in the log who may do more by it, and returns that for people.
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
): Promise<GivenRights> {
  const ensureUser = async (written: string) =>
    (await users.ensure(canonicalUserName(written))).name;

  // Users who may log in can be given roles, groups and servers before they do.
  await users.createMissing(
    [...Authenticator.allowed_users, ...Authenticator.admin_users].map(canonicalUserName),
  );
  const added = await groups.syncConfigured(
    Hub.load_groups.map((group) => ({ ...group, users: group.users.map(canonicalUserName) })),
    Hub.load_roles.flatMap((role) => role.groups ?? []),
  );
  const roleNames = await roles.namesGrantedTo(
    [...added.keys()].map((name) => ({ kind: 'group', name })),
  );
  for (const [group, names] of added) {
    log.info(
      { group, users: names, roles: roleNames.get(group) },
      'members added by configuration',
    );
  }
  const administrators: string[] = [];
  async function setAdmin({ id, name }: User, isAdmin: boolean): Promise<void> {
    await users.setAdmin(id, isAdmin, { mayBeLast: true });
    if (!isAdmin) return;
    log.info({ user: name }, 'user made administrator by configuration');
    administrators.push(`admin to user ${name}`);
  }
  const given = await applyRoles(Hub.load_roles, {
    roles,
    catalogue,
    ensureUser,
    memberNamesByGroup: (names) => groups.memberNamesByGroup(names),
    ensureGroup: async (name) => (await groups.getByName(name)).name,
    administrators: {
      list: () => users.listAdministratorNames(),
      set: async (userName, isAdmin) => setAdmin(await users.getByName(userName), isAdmin),
    },
    adminUsers: Authenticator.admin_users,
    managesRoles: Authenticator.manage_roles,
    log,
  });
  for (const name of Authenticator.admin_users) {
    const user = await users.getByName(canonicalUserName(name));
    if (!user.isAdmin) await setAdmin(user, true);
  }
  return {
    roles: [...administrators, ...given],
    members: [...added].map(([group, names]) => `${group} (${names.join(', ')})`),
  };
}
