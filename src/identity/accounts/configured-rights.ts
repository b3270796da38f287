import type { Config } from '../../platform/config/config.ts';
import { canonicalUserName } from '../authentication/user-name-rules.ts';
import { findDefaultRole, type RoleSubjectKind } from '../rbac/role.ts';
import { parseScope } from '../rbac/scope.ts';

type RightsConfig = Pick<Config, 'Hub' | 'Authenticator' | 'Spawner'>;

/**
 * What the configuration gives to names. It counts as held by a name whether or not a user, group or service has it
 * now: the next start, reload or login would give it.
 */
export interface ConfiguredRights {
  /** `Authenticator.admin_users`, and the users of the role `admin`. */
  isAdministrator(userName: string): boolean;
  /** Scopes of the roles that list the name itself, as written. */
  scopesOf(kind: RoleSubjectKind, name: string): readonly string[];
  /** Groups of a user (`Hub.load_groups`). */
  groupsOf(userName: string): readonly string[];
  /** Whether a user gets anything by the name. */
  givesRightsTo(userName: string): boolean;
  /** Settings that open something to the members of a group, such as `Spawner.profiles`. */
  openedTo(groupName: string): readonly string[];
  /**
   * Groups that a name belongs to, as a group does to itself, or looks after: a role that lists it has the scope
   * `groups` for that very group.
   */
  groupsAround(kind: RoleSubjectKind, name: string): readonly string[];
  /** Takes over roles, groups and administrators of a new configuration; all else is read at the start. */
  configure(config: Pick<RightsConfig, 'Hub' | 'Authenticator'>): void;
}

export function createConfiguredRights(
  config: RightsConfig,
  /** Those in force, also those that were added at run time. */
  services: () => readonly Pick<Config['Hub']['services'][number], 'name' | 'rules'>[],
): ConfiguredRights {
  const { profiles, limits_by_group: limits } = config.Spawner;
  let current: Pick<RightsConfig, 'Hub' | 'Authenticator'> = config;

  const canonicalName = { user: canonicalUserName, group: nfc, service: (name: string) => name };
  const isListed = (names: readonly string[] | undefined, kind: RoleSubjectKind, name: string) =>
    (names ?? []).some((each) => canonicalName[kind](each) === name.normalize('NFC'));

  const rolesOf = (kind: RoleSubjectKind, name: string) =>
    current.Hub.load_roles.filter((role) => isListed(role[`${kind}s`], kind, name));

  const scopesOf = (kind: RoleSubjectKind, name: string) =>
    rolesOf(kind, name).flatMap((role) => role.scopes ?? findDefaultRole(role.name)?.scopes ?? []);

  const groupsOf = (userName: string) =>
    current.Hub.load_groups
      .filter(({ users }) => isListed(users, 'user', userName))
      .map(({ name }) => nfc(name));

  const isAdministrator = (userName: string) =>
    isListed(current.Authenticator.admin_users, 'user', userName) ||
    rolesOf('user', userName).some(({ name }) => name === 'admin');

  function groupsAround(kind: RoleSubjectKind, name: string): readonly string[] {
    const lookedAfter = scopesOf(kind, name).flatMap((text) => {
      const { name: scope, filter } = parseScope(text);
      const isManager = scope === 'groups' || scope === 'admin:groups';
      return isManager && filter?.kind === 'group' ? (filter.value ?? []) : [];
    });
    const own = kind === 'group' ? [nfc(name)] : [];
    const joined = kind === 'user' ? groupsOf(name) : [];
    return [...own, ...lookedAfter, ...joined.flatMap((group) => groupsAround('group', group))];
  }

  return {
    isAdministrator,
    scopesOf,
    groupsOf,

    givesRightsTo: (userName) =>
      isAdministrator(userName) ||
      groupsOf(userName).length > 0 ||
      rolesOf('user', userName).length > 0,

    openedTo(groupName) {
      const names = (groups: readonly string[] | undefined) => isListed(groups, 'group', groupName);
      return [
        ...services()
          .filter(({ rules }) => rules.some(({ groups }) => names(groups)))
          .map(({ name }) => `rules of the service ${name}`),
        ...(profiles.some(({ groups }) => names(groups)) ? ['Spawner.profiles'] : []),
        ...(names(Object.keys(limits)) ? ['Spawner.limits_by_group'] : []),
      ];
    },

    groupsAround,

    configure(next) {
      current = next;
    },
  };
}

function nfc(name: string): string {
  return name.normalize('NFC');
}
