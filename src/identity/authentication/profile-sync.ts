import type { Logger } from 'pino';
import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import type { AuthenticatedUser } from '../../plugin/host/authenticator.ts';
import type { GroupStore } from '../users/group-store.ts';
import { infoFromClaims } from '../users/user-info.ts';
import type { UserInfoStore } from '../users/user-info-store.ts';
import { validateGroupName } from '../users/user-name.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { AdmissionRules } from './admission-rules.ts';

/** Brings what the hub knows of a user in line with what the authenticator says of them. */
export interface ProfileSync {
  apply(user: User, authenticated: AuthenticatedUser, authenticatorName: string): Promise<User>;
}

/** Gives a user exactly these roles as far as this origin is concerned; returns the unknown ones. */
export interface RoleAssigner {
  syncRolesOfUser(
    userName: string,
    roleNames: readonly string[],
    origin: string,
  ): Promise<readonly string[]>;
}

export function createProfileSync(deps: {
  readonly config: Pick<AuthenticatorConfig, 'manage_groups' | 'manage_roles'>;
  readonly rules: Pick<AdmissionRules, 'isConfiguredAdmin'>;
  readonly users: Pick<UserStore, 'setAdmin'>;
  readonly groups: Pick<GroupStore, 'syncMembershipsOf'>;
  readonly userInfo: Pick<UserInfoStore, 'sync'>;
  readonly roles?: RoleAssigner;
  readonly log: Logger;
}): ProfileSync {
  const { config, rules, users, groups, roles, log } = deps;

  return {
    async apply(user, authenticated, authenticatorName) {
      // admin_users only ever grants: leaving that list does not take the flag away.
      const isAdmin = rules.isConfiguredAdmin(user.name)
        ? true
        : (authenticated.admin ?? user.isAdmin);
      if (isAdmin !== user.isAdmin) {
        await users.setAdmin(user.id, isAdmin, { mayBeLast: true });
        log.info({ user: user.name, isAdmin }, 'administrator flag changed at login');
      }
      if (authenticated.info !== undefined) {
        await deps.userInfo.sync(user, infoFromClaims(authenticated.info, authenticatorName));
      }
      if (config.manage_groups && authenticated.groups !== undefined) {
        const usable = authenticated.groups.filter(isGroupName);
        if (usable.length < authenticated.groups.length) {
          const left = authenticated.groups.length - usable.length;
          log.warn({ user: user.name, left }, 'invalid group names from provider');
        }
        await groups.syncMembershipsOf(user.name, usable, authenticatorName);
      }
      if (config.manage_roles && authenticated.roles !== undefined && roles !== undefined) {
        const unknown = await roles.syncRolesOfUser(
          user.name,
          authenticated.roles,
          authenticatorName,
        );
        if (unknown.length > 0) {
          log.warn({ user: user.name, roles: unknown }, 'unknown roles from provider');
        }
      }
      return isAdmin === user.isAdmin ? user : { ...user, isAdmin };
    },
  };
}

function isGroupName(name: string): boolean {
  try {
    return validateGroupName(name) === name.normalize('NFC');
  } catch (error) {
    if (error instanceof HubError) return false;
    throw error;
  }
}
