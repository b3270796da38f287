import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { text } from '../../platform/texts/text.ts';
import type { AccountPasswords } from '../authentication/account-passwords.ts';
import { type Authenticators, accountOwnerOf } from '../authentication/create-authenticators.ts';
import type { UserNameRules } from '../authentication/user-name-rules.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { FirstRun } from './first-run.ts';
import type { SetUpLink } from './set-up-link.ts';

/** How the very first administrator is made: with the secret of a set-up link. */
export interface FirstAdministrator {
  /**
   * A new link; an older one ends. Undefined when there is an administrator already, or another way to
   * log in than the passwords of the hub.
   */
  issueLink(): Promise<URL | undefined>;
  isValid(secret: string): Promise<boolean>;
  /** Creates the administrator. Throws `forbidden` when the link does not work (any more). */
  create(account: {
    readonly secret: string;
    readonly name: string;
    readonly password: string;
  }): Promise<User>;
}

export function createFirstAdministrator(deps: {
  readonly setUpLink: SetUpLink;
  readonly users: Pick<UserStore, 'create' | 'findByName' | 'setAdmin'>;
  readonly userNames: Pick<UserNameRules, 'resolveNew'>;
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly passwords: Pick<AccountPasswords, 'problemWith' | 'set'>;
  readonly firstRun: Pick<FirstRun, 'begin'>;
}): FirstAdministrator {
  const { setUpLink: link, users, authenticators, passwords } = deps;

  return {
    isValid: link.isValid,

    async issueLink() {
      const isOnlyWay =
        accountOwnerOf(authenticators) !== undefined && authenticators.list.length === 1;
      return isOnlyWay ? await link.issue() : undefined;
    },

    async create({ secret, name, password }) {
      if (!(await link.isValid(secret))) throw usedUp();
      const userName = deps.userNames.resolveNew(name);
      const problem = passwords.problemWith(password, userName);
      if (problem !== undefined) throw new HubError('bad_request', problem);
      // Of two requests at once, at whatever instances, one has it.
      if (!(await link.take(secret))) throw usedUp();
      try {
        const existing = await users.findByName(userName);
        const user =
          existing ?? (await users.create({ name: userName, isAdmin: true, isInvited: true }));
        await deps.firstRun.begin(user.id);
        await passwords.set(user, password);
        if (existing !== undefined) await users.setAdmin(existing.id, true);
        return { ...user, isAdmin: true };
      } catch (error) {
        await link.giveBack(secret).catch(() => undefined);
        throw error;
      }
    },
  };
}

function usedUp(): HubError {
  return new HubError('forbidden', text`This set-up link does not work any more.`, {
    hint: text`Log in if there is an administrator already; else ${hubCommand('setup-link')} makes a new link.`,
  });
}
