import type { UserNameRules } from '../authentication/user-name-rules.ts';
import { equalSecrets, hashSecret } from '../crypto/hash.ts';
import { randomSecret } from '../crypto/random.ts';
import { HubError } from '../errors.ts';
import type { SettingStore } from '../store/setting-store.ts';
import type { User, UserStore } from '../users/user-store.ts';

/** The way in for the very first administrator: a link that works once, shown once at start. */
export interface FirstAdministrator {
  /** A new secret for the link, unless there is an administrator already; an older link ends. */
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

/** Creates the set-up over the stores. `hasAdministrator` also counts those of the configuration. */
export function createFirstAdministrator(deps: {
  readonly settings: SettingStore;
  readonly users: Pick<UserStore, 'create' | 'findByName' | 'setAdmin'>;
  readonly names: Pick<UserNameRules, 'resolveNew'>;
  readonly hasAdministrator: () => Promise<boolean>;
  readonly setPassword: (userName: string, password: string) => Promise<void>;
  /** Throws `bad_request` for a password that is too short or too common. */
  readonly checkPassword: (userName: string, password: string) => void;
}): FirstAdministrator {
  const { settings, users } = deps;
  let isCreating = false;

  async function isValid(secret: string): Promise<boolean> {
    const secretHash = await settings.find(settingKey);
    return secretHash !== undefined && equalSecrets(secretHash, hashSecret(secret));
  }

  return {
    isValid,

    async issueSecret() {
      if (await deps.hasAdministrator()) return undefined;
      const secret = randomSecret();
      await settings.set(settingKey, hashSecret(secret));
      return secret;
    },

    async create({ secret, name, password }) {
      if (isCreating || !(await isValid(secret)) || (await deps.hasAdministrator())) {
        throw new HubError('forbidden', 'This set-up link does not work any more.', {
          hint: 'Start the hub again for a new link, or log in if there is an administrator.',
        });
      }
      isCreating = true;
      try {
        const userName = deps.names.resolveNew(name);
        deps.checkPassword(userName, password);
        const existing = await users.findByName(userName);
        const user =
          existing ?? (await users.create({ name: userName, isAdmin: true, isInvited: true }));
        await deps.setPassword(userName, password);
        if (existing !== undefined) await users.setAdmin(existing.id, true);
        await settings.delete(settingKey);
        return { ...user, isAdmin: true };
      } finally {
        isCreating = false;
      }
    },
  };
}
