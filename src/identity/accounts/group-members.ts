import type { RequireVersion } from '../../platform/crypto/version.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { Group, GroupStore } from '../users/group-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { ActingOnUsers } from './acting-on-users.ts';

/** Groups and who belongs to them, with the rule that holds for every caller. */
export interface GroupMembers {
  /**
   * Throws `forbidden` when the group may do more than the caller, and for users over whom others would
   * get rights that the caller does not have.
   */
  add(
    caller: Caller,
    groupName: string,
    userNames: readonly string[],
    requireVersion?: RequireVersion,
  ): Promise<void>;
  /** Creates groups with members, all or none. Throws as `add` does, and `conflict` for taken names. */
  createGroups(
    caller: Caller,
    groupNames: readonly string[],
    userNames: readonly string[],
  ): Promise<Group[]>;
  remove(
    groupName: string,
    userNames: readonly string[],
    requireVersion?: RequireVersion,
  ): Promise<void>;
  /** Throws as `add` does, and `conflict` for one who is not in the first group. */
  move(
    caller: Caller,
    groupNames: { readonly from: string; readonly to: string },
    userNames: readonly string[],
  ): Promise<void>;
  /** Throws `not_found`, and `forbidden` when the configuration gives the group more than the caller has. */
  delete(caller: Caller, groupName: string, requireVersion?: RequireVersion): Promise<void>;
}

export function createGroupMembers(deps: {
  readonly groups: Pick<
    GroupStore,
    'addMembers' | 'createAll' | 'delete' | 'getByName' | 'moveMembers' | 'removeMembers'
  >;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly acting: ActingOnUsers;
}): GroupMembers {
  const { groups, acting } = deps;

  /** Those that exist; the store refuses the others. */
  async function usersOf(names: readonly string[]): Promise<User[]> {
    const found = await Promise.all([...new Set(names)].map((name) => deps.users.findByName(name)));
    return found.filter((user) => user !== undefined);
  }

  return {
    async add(caller, groupName, userNames, requireVersion) {
      await acting.requireMayAddTo(caller, groupName, await usersOf(userNames));
      await groups.addMembers(groupName, userNames, 'api', requireVersion);
    },

    async createGroups(caller, names, memberNames) {
      const members = await usersOf(memberNames);
      for (const name of names) await acting.requireMayAddTo(caller, name, members);
      return groups.createAll({ names, memberNames, origin: 'api' });
    },

    remove: (groupName, userNames, requireVersion) =>
      groups.removeMembers(groupName, userNames, requireVersion),

    async move(caller, { from, to }, userNames) {
      await acting.requireMayAddTo(caller, to, await usersOf(userNames));
      await groups.moveMembers({ from, to }, userNames, 'api');
    },

    async delete(caller, groupName, requireVersion) {
      const { name } = await groups.getByName(groupName);
      await acting.requireMayDeleteGroup(caller, name);
      await groups.delete(name, requireVersion);
    },
  };
}
