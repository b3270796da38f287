import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import type { LoginThrottle } from '../authentication/login-throttle.ts';
import type { ThrottleRecord } from '../authentication/throttle-counters.ts';

/** Who has to wait after failed logins, whichever step of the login it was. */
export interface Lockouts {
  /** The longest wait first. */
  list(): Promise<ThrottleRecord[]>;
  /** Ends a wait and forgets the failures; false when there were none. */
  lift(subject: Pick<ThrottleRecord, 'kind' | 'subject'>): Promise<boolean>;
}

export function createLockouts(
  throttles: readonly Pick<LoginThrottle, 'list' | 'lift'>[],
  audit: Pick<AuditTrail, 'recordAlone'>,
): Lockouts {
  return {
    async list() {
      const records = (await Promise.all(throttles.map((throttle) => throttle.list()))).flat();
      const bySubject = Map.groupBy(records, ({ kind, subject }) => `${kind}:${subject}`);
      return [...bySubject.values()]
        .flatMap((same) => {
          const [longest] = same.sort((left, right) => right.lockedUntil - left.lockedUntil);
          if (longest === undefined) return [];
          return [{ ...longest, failures: same.reduce((sum, each) => sum + each.failures, 0) }];
        })
        .sort((left, right) => right.lockedUntil - left.lockedUntil);
    },

    async lift(subject) {
      const lifted = await Promise.all(throttles.map((throttle) => throttle.lift(subject)));
      if (!lifted.includes(true)) return false;
      const { kind, subject: name } = subject;
      const target = { kind: kind === 'user' ? 'user' : 'lockout', name } as const;
      await audit.recordAlone({ action: 'lockout.lift', target });
      return true;
    },
  };
}
