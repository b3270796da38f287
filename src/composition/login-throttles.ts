import {
  createLoginThrottle,
  type LoginThrottle,
  type ThrottleRecord,
} from '../authentication/login-throttle.ts';
import type { Config } from '../config/config.ts';
import type { HubDatabase } from '../store/database.ts';
import type { KeyvSpaces } from '../store/keyv.ts';

/** What counts failed attempts, for each step of a login. */
export function createThrottles({
  config,
  keyv,
  database,
}: {
  readonly config: Pick<Config, 'Authenticator'>;
  readonly keyv: Pick<KeyvSpaces, 'space'>;
  readonly database: Pick<HubDatabase, 'now'>;
}): { readonly login: LoginThrottle; readonly secondFactor: LoginThrottle } {
  const throttle = (space: string) =>
    createLoginThrottle({
      ...config.Authenticator,
      records: keyv.space<ThrottleRecord>(space),
      now: database.now,
    });
  return { login: throttle('login-throttle'), secondFactor: throttle('second-factor-throttle') };
}
