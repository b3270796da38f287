import type { Deed } from '../audit/deed.ts';
import type { RoleAssignment } from './role.ts';

/** Something done to a role, for the audit log. */
export function roleDeed(
  action: Deed['action'],
  name: string,
  detail: NonNullable<Deed['detail']> = {},
): Deed {
  return { action, target: { kind: 'role', name }, detail };
}

/** A role given or taken away; what concerns a user is found under their name. */
export function assignmentDeed(
  action: Deed['action'],
  { roleName, subjectKind: kind, subjectName: name }: Omit<RoleAssignment, 'origin'>,
): Deed {
  return { action, target: { kind, name }, detail: { role: roleName } };
}
