import { equalSecrets, hashSecret } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import type { SettingStore } from '../../platform/store/setting-store.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { UserStore } from '../users/user-store.ts';

/** The link with which the first administrator begins; it works once, and only the newest one does. */
export interface SetUpLink {
  /** A new link, unless there is an administrator already; an older link ends. */
  issue(): Promise<URL | undefined>;
  isValid(secret: string): Promise<boolean>;
  /** Ends it for good where an administrator can log in by password; resolves to whether that is so. */
  endWhereDone(): Promise<boolean>;
  /** Ends the link; false when it does not work, or another one was faster. */
  take(secret: string): Promise<boolean>;
  /** Makes a link that was taken in vain work again, unless there is a newer one. */
  giveBack(secret: string): Promise<void>;
}

/** Where the link leads, below the base path. */
export const setUpPath = 'hub/set-up';

const settingKey = 'first-administrator-secret-hash';

export function createSetUpLink(deps: {
  readonly settings: SettingStore;
  readonly users: Pick<UserStore, 'listAdministratorNames'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly publicUrl: URL;
  readonly basePath: string;
}): SetUpLink {
  const { settings, users, credentials } = deps;

  async function hasAdministrator(): Promise<boolean> {
    for (const name of await users.listAdministratorNames()) {
      if ((await credentials.findPasswordHash(name)) !== undefined) return true;
    }
    return false;
  }

  async function endWhereDone(): Promise<boolean> {
    if (!(await hasAdministrator())) return false;
    const secretHash = await settings.find(settingKey);
    if (secretHash !== undefined) await settings.take(settingKey, secretHash);
    return true;
  }

  return {
    endWhereDone,

    async issue() {
      if (await endWhereDone()) return undefined;
      const secret = randomSecret();
      await settings.set(settingKey, hashSecret(secret));
      const link = new URL(deps.basePath + setUpPath, deps.publicUrl);
      link.searchParams.set('secret', secret);
      return link;
    },

    async isValid(secret) {
      if (await endWhereDone()) return false;
      const secretHash = await settings.find(settingKey);
      return secretHash !== undefined && equalSecrets(secretHash, hashSecret(secret));
    },

    take: (secret) => settings.take(settingKey, hashSecret(secret)),

    async giveBack(secret) {
      await settings.keep(settingKey, hashSecret(secret));
    },
  };
}
