import { implicitRoleNames, type RoleAssignment } from './role.ts';

/** Why a user holds a role. */
export type RoleReason =
  | { readonly kind: 'every user' | 'administrator' }
  /** Given to the user, by `config`, `api` or an authenticator. */
  | { readonly kind: 'given'; readonly origin: string }
  /** Given to a group, in which the user is by `memberOrigin`. */
  | { readonly kind: 'group'; readonly groupName: string; readonly memberOrigin: string };

/** Every reason for which a user holds roles, by the name of the role. */
export function reasonsForRoles(
  user: {
    readonly name: string;
    readonly isAdmin: boolean;
    readonly groups: readonly { readonly name: string; readonly origin: string }[];
  },
  assignments: readonly RoleAssignment[],
): ReadonlyMap<string, readonly RoleReason[]> {
  const reasons = new Map<string, RoleReason[]>();
  const add = (roleName: string, reason: RoleReason) =>
    reasons.set(roleName, [...(reasons.get(roleName) ?? []), reason]);
  const holder = { kind: 'user', ...user, groupNames: [] } as const;
  for (const name of implicitRoleNames(holder)) {
    add(name, { kind: name === 'admin' ? 'administrator' : 'every user' });
  }
  const origins = new Map(user.groups.map(({ name, origin }) => [name, origin]));
  for (const { roleName, subjectKind, subjectName, origin } of assignments) {
    if (subjectKind === 'user' && subjectName === user.name)
      add(roleName, { kind: 'given', origin });
    const memberOrigin = subjectKind === 'group' ? origins.get(subjectName) : undefined;
    if (memberOrigin !== undefined) {
      add(roleName, { kind: 'group', groupName: subjectName, memberOrigin });
    }
  }
  return reasons;
}
