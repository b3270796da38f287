/** Who belongs to which group, at one moment. */
export interface Membership {
  groupsOf(userName: string): ReadonlySet<string>;
  membersOf(groupName: string): ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

/** `members` lists the user names of each group. */
export function createMembership(
  membersByGroup: ReadonlyMap<string, ReadonlySet<string>>,
): Membership {
  const groupsByUser = new Map<string, Set<string>>();
  for (const [group, members] of membersByGroup) {
    for (const member of members) {
      const groups = groupsByUser.get(member);
      if (groups === undefined) groupsByUser.set(member, new Set([group]));
      else groups.add(group);
    }
  }
  return {
    groupsOf: (userName) => groupsByUser.get(userName) ?? none,
    membersOf: (groupName) => membersByGroup.get(groupName) ?? none,
  };
}

/** A membership without any group. */
export const emptyMembership: Membership = { groupsOf: () => none, membersOf: () => none };
