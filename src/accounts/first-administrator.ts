import type { AccountPasswords } from '../authentication/account-passwords.ts';
import { type Authenticators, accountOwnerOf } from '../authentication/create-authenticators.ts';
import type { UserNameRules } from '../authentication/user-name-rules.ts';
import { equalSecrets, hashSecret } from '../crypto/hash.ts';
import { randomSecret } from '../crypto/random.ts';
import { HubError } from '../errors.ts';
import type { SettingStore } from '../store/setting-store.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { User, UserStore } from '../users/user-store.ts';

/** The way in for the very first administrator: a link that works once, shown once at start. */
export interface FirstAdministrator {
  /**
   * A new secret for the link; an older link ends. Undefined when there is an administrator already, or
   * another way to log in than the passwords of the hub.
   */
  issueSecret(): Promise<string | undefined>;
  isValid(secret: string): Promise<boolean>;
  /** Creates the administrator. Throws `forbidden` when the link does not work (any more). */
  create(account: {
    readonly secret: string;
    readonly name: string;
    readonly password: string;
  }): Promise<User>;
}

const settingKey = 'first-administrator-secret-hash';

export function createFirstAdministrator(deps: {
  readonly settings: SettingStore;
  readonly users: Pick<UserStore, 'create' | 'findByName' | 'listAdministratorNames' | 'setAdmin'>;
  readonly names: Pick<UserNameRules, 'resolveNew'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly passwords: Pick<AccountPasswords, 'problemWith' | 'set'>;
}): FirstAdministrator {
  const { settings, users, credentials, authenticators, passwords } = deps;
  let isCreating = false;

  async function isValid(secret: string): Promise<boolean> {
    const secretHash = await settings.find(settingKey);
    return secretHash !== undefined && equalSecrets(secretHash, hashSecret(secret));
  }

  /** One who cannot log in, as of the configuration, does not count while passwords are the only way. */
  async function hasAdministrator(): Promise<boolean> {
    for (const name of await users.listAdministratorNames()) {
      if ((await credentials.findPasswordHash(name)) !== undefined) return true;
    }
    return false;
  }

  return {
    isValid,

    async issueSecret() {
      const isOnlyWay =
        accountOwnerOf(authenticators) !== undefined && authenticators.list.length === 1;
      if (!isOnlyWay || (await hasAdministrator())) return undefined;
      const secret = randomSecret();
      await settings.set(settingKey, hashSecret(secret));
      return secret;
    },

    async create({ secret, name, password }) {
      // Of two requests at once, only one may find the link valid.
      if (isCreating) throw usedUp();
      isCreating = true;
      try {
        if (!(await isValid(secret)) || (await hasAdministrator())) throw usedUp();
        const userName = deps.names.resolveNew(name);
        const problem = passwords.problemWith(password, userName);
        if (problem !== undefined) throw new HubError('bad_request', problem);
        const existing = await users.findByName(userName);
        const user =
          existing ?? (await users.create({ name: userName, isAdmin: true, isInvited: true }));
        await passwords.set(user, password);
        if (existing !== undefined) await users.setAdmin(existing.id, true);
        await settings.delete(settingKey);
        return { ...user, isAdmin: true };
      } finally {
        isCreating = false;
      }
    },
  };
}

function usedUp(): HubError {
  return new HubError('forbidden', 'This set-up link does not work any more.', {
    hint: 'Start the hub again for a new link, or log in if there is an administrator.',
  });
}
