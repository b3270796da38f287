import { localizedPhrase, type Phrase, text } from '../../platform/texts/text.ts';
import type { PasswordHasher } from '../../plugin/host/authenticator.ts';
import type {
  PasswordChangeOptions,
  PasswordCredentialStore,
} from '../users/password-credential-store.ts';
import type { User } from '../users/user-store.ts';
import { type Authenticators, accountOwnerOf } from './create-authenticators.ts';

/** The passwords of the hub's own accounts: judged, hashed, stored. */
export interface AccountPasswords {
  /** Whether a configured authenticator keeps its accounts in the hub. */
  readonly isUsed: boolean;
  /** Fewest characters of a new password, where the authenticator tells beforehand. */
  readonly minimumLength: number | undefined;
  /** Says why a new password is not good enough, in a sentence; undefined when it is. */
  problemWith(password: string, userName: string): Phrase | undefined;
  /** How many tokens the user has that a new password can end. */
  apiTokenCount(userId: string): Promise<number>;
  /** Stores a new password and ends the user's other logins, so that a stolen one is of no more use. */
  set(
    user: Pick<User, 'id' | 'name'>,
    password: string,
    options?: SetPasswordOptions,
  ): Promise<void>;
}

export interface SetPasswordOptions extends PasswordChangeOptions {
  /** The session in which the person changed it, which goes on. */
  readonly keepSessionId?: string;
}

export function createAccountPasswords(deps: {
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly credentials: Pick<PasswordCredentialStore, 'setPasswordHash'>;
  readonly passwordHasher: Pick<PasswordHasher, 'hash'>;
  readonly countApiTokens: (userId: string) => Promise<number>;
  readonly endLoginsOf: (userId: string, options: { readonly except?: string }) => Promise<unknown>;
}): AccountPasswords {
  // Looked up each time: a reload of the configuration changes the list.
  const owner = () => accountOwnerOf(deps.authenticators)?.authenticator;

  return {
    get isUsed() {
      return owner() !== undefined;
    },

    get minimumLength() {
      return owner()?.minimumPasswordLength;
    },

    problemWith(password, userName) {
      const problem = owner()?.passwordProblem?.(password, { userName });
      if (problem !== undefined) return localizedPhrase(problem);
      return password === '' ? text`A password cannot be empty.` : undefined;
    },

    apiTokenCount: deps.countApiTokens,

    async set({ id, name }, password, { keepSessionId, ...change } = {}) {
      const passwordHash = await deps.passwordHasher.hash(password);
      await deps.credentials.setPasswordHash(name, passwordHash, change);
      await deps.endLoginsOf(id, keepSessionId === undefined ? {} : { except: keepSessionId });
    },
  };
}
