import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import type { RoleAssignment } from './role.ts';

/** Something done to a role, for the audit log. */
export function roleAuditEvent(
  action: AuditEvent['action'],
  name: string,
  detail: NonNullable<AuditEvent['detail']> = {},
): AuditEvent {
  return { action, target: { kind: 'role', name }, detail };
}

/** A role given or taken away; what concerns a user is found under their name. */
export function assignmentAuditEvent(
  action: AuditEvent['action'],
  { roleName, subjectKind: kind, subjectName: name }: Omit<RoleAssignment, 'origin'>,
): AuditEvent {
  return { action, target: { kind, name }, detail: { role: roleName } };
}
