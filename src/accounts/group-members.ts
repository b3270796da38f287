import { HubError } from '../errors.ts';
import { mayGrant } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import { expandScopes } from '../rbac/expand-scopes.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { Group, GroupStore } from '../users/group-store.ts';

/** Who belongs to a group, with the rule that holds whoever changes it. */
export interface GroupMembers {
  /** Throws `forbidden` when the group may do more than the caller. */
  add(caller: Caller, groupName: string, userNames: readonly string[]): Promise<void>;
  /** Creates groups with members, all or none. Throws as `add` does, and `conflict` for taken names. */
  createGroups(
    caller: Caller,
    groupNames: readonly string[],
    userNames: readonly string[],
  ): Promise<Group[]>;
  remove(groupName: string, userNames: readonly string[]): Promise<void>;
}

export function createGroupMembers(deps: {
  readonly groups: Pick<GroupStore, 'addMembers' | 'createAll' | 'removeMembers'>;
  readonly roles: Pick<RoleStore, 'heldBy'>;
  readonly authority: Authority;
}): GroupMembers {
  const { groups, roles, authority } = deps;

  /** Membership brings the group's roles along: nobody may hand out more than they hold. */
  async function requireMayFill(caller: Caller, groupName: string): Promise<void> {
    const held = await roles.heldBy({ kind: 'group', name: groupName });
    const scopes = expandScopes(
      held.flatMap((role) => role.scopes),
      { catalogue: authority.catalogue, owner: caller.owner },
    );
    if (mayGrant(caller.scopes, scopes, await authority.membershipFor(caller.scopes))) return;
    throw new HubError('forbidden', 'This group holds roles that may do more than you may.');
  }

  return {
    async add(caller, groupName, userNames) {
      await requireMayFill(caller, groupName);
      await groups.addMembers(groupName, userNames, 'api');
    },

    async createGroups(caller, names, memberNames) {
      if (memberNames.length > 0) for (const name of names) await requireMayFill(caller, name);
      return groups.createAll({ names, memberNames, origin: 'api' });
    },

    remove: (groupName, userNames) => groups.removeMembers(groupName, userNames),
  };
}
