import {
  createLoginThrottle,
  type LoginThrottle,
  type LoginThrottleOptions,
} from '../../src/identity/authentication/login-throttle.ts';

/** A throttle that is soon reached: three failures of a name, and a delay of ten seconds to a minute. */
export function createTestThrottle(
  options: Pick<LoginThrottleOptions, 'records' | 'now'> & Partial<LoginThrottleOptions>,
): LoginThrottle {
  return createLoginThrottle({
    lockout_attempts: 3,
    lockout_delay: 10,
    lockout_max_delay: 60,
    max_pending_logins: 500,
    ...options,
  });
}
