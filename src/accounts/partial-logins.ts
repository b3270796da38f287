import type { Keyv } from 'keyv';
import { hashSecret } from '../crypto/hash.ts';
import { randomSecret } from '../crypto/random.ts';

/** A login whose password was right and that still lacks something. */
export interface PartialLogin {
  readonly userId: string;
  readonly authenticator: string;
  readonly identityId: string;
  readonly step: 'second-factor' | 'new-password';
  readonly mustChangePassword: boolean;
  readonly next?: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Logins between their steps, kept in the hub; a browser holds only the key to its own. */
export interface PartialLogins {
  /** Keeps a login for five minutes and gives its key. */
  begin(login: Omit<PartialLogin, 'expiresAt'>): Promise<string>;
  find(key: string): Promise<PartialLogin | undefined>;
  /** Takes the login away; of several who try at once, one gets it. */
  take(key: string): Promise<PartialLogin | undefined>;
}

const lifetimeMs = 5 * 60_000;

/** Creates the pending logins on a Keyv space of their own. */
export function createPartialLogins(
  records: Keyv<PartialLogin>,
  now: () => number = Date.now,
): PartialLogins {
  async function find(key: string): Promise<PartialLogin | undefined> {
    const login = await records.get(hashSecret(key));
    return login !== undefined && login.expiresAt > now() ? login : undefined;
  }

  return {
    find,

    async begin(login) {
      const key = randomSecret();
      await records.set(hashSecret(key), { ...login, expiresAt: now() + lifetimeMs }, lifetimeMs);
      return key;
    },

    async take(key) {
      const login = await find(key);
      const isTaken = login !== undefined && (await records.delete(hashSecret(key)));
      return isTaken ? login : undefined;
    },
  };
}
