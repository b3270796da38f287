/** Who may log in, and who is an administrator, by the groups that a login brings. */
interface GroupRules {
  readonly allowed_groups: readonly string[];
  readonly admin_groups: readonly string[];
}

/** What rules on groups make of a user; nothing where there are none. Administrators may always log in. */
export function judgeGroups(
  { allowed_groups: allowed, admin_groups: admins }: GroupRules,
  isIn: (group: string) => boolean,
): { readonly allowed?: boolean; readonly admin?: boolean } {
  return {
    ...(allowed.length > 0 && { allowed: allowed.some(isIn) || admins.some(isIn) }),
    ...(admins.length > 0 && { admin: admins.some(isIn) }),
  };
}
