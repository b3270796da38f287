import * as real from '../../src/platform/store/audit-trail.ts';
import { isRecording } from './switch.ts';

/** Stands for `src/platform/store/audit-trail.ts`: as it is while the hub records, and nothing while it does not. */
export function createAuditTrail(
  options: Parameters<typeof real.createAuditTrail>[0],
): real.AuditTrail {
  const trail = real.createAuditTrail(options);
  return {
    ...trail,
    record: (...parts) => (isRecording() ? trail.record(...parts) : Promise.resolve()),
    recordNewUsers: (insertion, auditEvent, users) =>
      isRecording()
        ? trail.recordNewUsers(insertion, auditEvent, users)
        : real.insertUsers(options.kysely, insertion, users),
    recordAlone: (...auditEvents) => (isRecording() ? trail.recordAlone(...auditEvents) : Promise.resolve()),
    recordBounded(auditEvent) {
      if (isRecording()) trail.recordBounded(auditEvent);
    },
  };
}
