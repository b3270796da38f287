import { createPasskeyStore } from '../../src/identity/users/passkey-store.ts';
import { createSecondFactorStore } from '../../src/identity/users/second-factor-store.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { createSealer } from '../../src/platform/crypto/sealer.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';

const now = new Date(1000);
const passkey = {
  name: 'Laptop',
  publicKey: 'a key',
  signCount: 0,
  transports: [],
  verifiesUser: true,
  createdAt: now,
};

/** The stores of both kinds of second factors, and how a user gets one of each. */
export function createFactorStores(database: HubDatabase) {
  const sealer = createSealer([new Secret('first key')], 'second-factor');
  const passkeys = createPasskeyStore(database);
  const factors = createSecondFactorStore(database, { sealer });
  return {
    passkeys,
    factors,
    addPasskey: (userId: string, id: string, recoveryCodeHashes: readonly string[] = []) =>
      passkeys.add({ ...passkey, id, userId }, { limit: 10, recoveryCodeHashes }),
    async addApp(userId: string, recoveryCodeHashes: readonly string[] = []) {
      return factors.add(userId, { totpSecret: 'SECRET', step: 1, recoveryCodeHashes, now });
    },
  };
}
