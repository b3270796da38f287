import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { User } from '../users/user-store.ts';

type Settings = Pick<AuthenticatorConfig, 'require_second_factor' | 'second_factor_elsewhere'>;
type Member = Pick<User, 'name' | 'isAdmin'>;

/** For whom a second factor is compulsory (`Authenticator.require_second_factor`). */
export interface SecondFactorRule {
  isRequiredOf(user: Member): Promise<boolean>;
  /** Whether the logins of an authenticator pass without evidence, since its provider asks for a second factor. */
  isLeftTo(authenticator: string): boolean;
  /** Takes over what has been reloaded. */
  configure(settings: Settings): void;
}

export function createSecondFactorRule(deps: {
  readonly settings: Settings;
  readonly groups: Pick<GroupStore, 'groupNamesOf'>;
  readonly roles: Pick<RoleStore, 'heldBy'>;
}): SecondFactorRule {
  let { settings } = deps;

  return {
    async isRequiredOf({ name, isAdmin }) {
      const { require_second_factor: required } = settings;
      if (typeof required === 'boolean') return required;
      const groupNames = await deps.groups.groupNamesOf(name);
      if (required.groups.some((group) => groupNames.includes(group))) return true;
      if (required.roles.length === 0) return false;
      const held = await deps.roles.heldBy({ kind: 'user', name, isAdmin, groupNames });
      return held.some((role) => required.roles.includes(role.name));
    },
    isLeftTo: (authenticator) => settings.second_factor_elsewhere.includes(authenticator),
    configure(next) {
      settings = next;
    },
  };
}
