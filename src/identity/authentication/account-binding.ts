import {
  accountAuthenticatorOf,
  usersNamedIn,
} from '../../platform/config/account-authenticator.ts';
import type { Config } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { User } from '../users/user-store.ts';
import { canonicalUserName } from './user-name-rules.ts';

/**
 * To which authenticator accounts belong whose users have not logged in yet. Names are worth something
 * only together with who vouches for them: at another provider a stranger may have the same one.
 */
export interface AccountBinding {
  /** Whether who comes by an authenticator may have an account of their name; undefined: one yet to be made. */
  isFor(user: Pick<User, 'madeFor'> | undefined, authenticatorName: string): boolean;
  /** Whether the configuration makes the account of this name, and may give it rights. */
  isNamed(name: string): boolean;
  /** For which authenticator a new account is. Throws `bad_request` where that is not clear. */
  choose(asked?: string): string;
}

export function createAccountBinding(
  config: Pick<Config, 'Hub' | 'Authenticator' | 'authenticators'>,
): AccountBinding {
  const names = config.authenticators.map(({ name }) => name);
  const usual = accountAuthenticatorOf(config);
  const named = new Set(usersNamedIn(config).map(canonicalUserName));

  return {
    isFor(user, authenticatorName) {
      if (names.length === 1) return true;
      const { madeFor } = user ?? {};
      const owner = madeFor !== undefined && names.includes(madeFor) ? madeFor : usual;
      return owner === authenticatorName;
    },

    isNamed: (name) => named.has(name),

    choose(asked) {
      if (asked !== undefined && !names.includes(asked)) {
        throw new HubError(
          'bad_request',
          text`There is no authenticator ${JSON.stringify(asked)}.`,
          {
            hint: text`There are: ${names.join(', ')}.`,
          },
        );
      }
      const chosen = asked ?? usual;
      if (chosen !== undefined) return chosen;
      throw new HubError(
        'bad_request',
        text`For which authenticator is the account: ${names.join(' or ')}? Set Authenticator.account_authenticator, or name one.`,
      );
    },
  };
}
