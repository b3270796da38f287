import type { Logger } from 'pino';
import { text } from '../../platform/texts/text.ts';
import type { Authenticators } from '../authentication/create-authenticators.ts';
import { accountOwnerOf } from '../authentication/create-authenticators.ts';
import type { LoginResult, LoginService } from '../authentication/login-service.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { PasskeyAnswer, Passkeys } from './passkeys.ts';

/** Logins by a passkey alone, which stands for the password and the second factor. */
export interface PasskeyLogin {
  /** The login method that it belongs to: that of the passwords. Undefined where it is not offered. */
  method(): string | undefined;
  attempt(answer: PasskeyAnswer, address: string): Promise<LoginResult>;
}

export function createPasskeyLogin(deps: {
  readonly passkeys: Pick<Passkeys, 'unusable' | 'check'>;
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly loginService: Pick<LoginService, 'admitUser'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly log: Logger;
}): PasskeyLogin {
  const { passkeys } = deps;

  const method = () =>
    passkeys.unusable === undefined ? accountOwnerOf(deps.authenticators)?.name : undefined;

  return {
    method,

    async attempt(answer, address) {
      const via = method();
      if (via === undefined) return notAccepted;
      const checked = await passkeys.check('login', { ...answer, address });
      if (checked.outcome === 'delayed') {
        const { retryAfterSeconds } = checked;
        return {
          outcome: 'refused',
          status: 429,
          message: text`Too many attempts.`,
          retryAfterSeconds,
        };
      }
      if (checked.outcome === 'wrong') return notAccepted;
      const { user } = checked;
      const credential = await deps.credentials.findPasswordHash(user.name);
      if (credential === undefined) return notAccepted;
      const { mustChange: mustChangePassword } = credential;
      const admitted = await deps.loginService.admitUser(
        { name: user.name, mustChangePassword, isMultiFactor: true },
        via,
      );
      if (admitted.outcome === 'refused') return admitted;
      // `username_map` is for names as they are typed: it may lead the name of this account to another.
      if (admitted.user.id !== user.id) {
        deps.log.warn(
          { user: user.name },
          'username_map names another user than the owner of the passkey',
        );
        return notAccepted;
      }
      return admitted;
    },
  };
}

const notAccepted: LoginResult = {
  outcome: 'refused',
  status: 401,
  message: text`This passkey was not accepted. Try again, or log in another way.`,
};
