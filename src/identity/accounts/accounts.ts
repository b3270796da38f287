import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { GivenVolume } from '../../plugin/host/spawn-request.ts';
import type { AccountBinding } from '../authentication/account-binding.ts';
import type { UserNameRules } from '../authentication/user-name-rules.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { SystemAccountStore } from '../users/system-account-store.ts';
import { noSuchUser, type User, type UserStore, userNameTaken } from '../users/user-store.ts';
import type { UserVolumeStore } from '../users/user-volume-store.ts';
import type { ActingOnUsers } from './acting-on-users.ts';
import type { ConfiguredRights } from './configured-rights.ts';

/** Creating, changing and deleting users, with the rules that hold for every caller. */
export interface Accounts {
  /**
   * Creates the users that do not exist yet, and tells the names of those that do. Throws `conflict` when all of them do, and `bad_request` when it
   * is not clear by which authenticator they will come.
   */
  create(
    caller: Caller,
    names: readonly string[],
    options: { readonly isAdmin: boolean; readonly authenticator?: string | undefined },
  ): Promise<{ readonly created: User[]; readonly existing: readonly string[] }>;
  change(
    caller: Caller,
    userName: string,
    change: {
      readonly name?: string;
      readonly isAdmin?: boolean;
      /** Decided by administrators only: its user has the files. */
      readonly systemAccount?: string;
      /** Without a source the volume of the configuration is used again. */
      readonly volume?: Omit<GivenVolume, 'source'> & { readonly source: string | undefined };
    },
  ): Promise<User>;
  /**
   * Stops the user's servers and shuts the user out: logins, tokens and shares are as if they were not there, until
   * the suspension ends. Throws `bad_request` for oneself, and `conflict` for the last administrator.
   */
  setSuspended(caller: Caller, userName: string, isSuspended: boolean): Promise<void>;
  /**
   * Stops the user's servers, ends the sessions, and deletes everything of theirs. Tells whether the configuration
   * still gives rights to the name.
   */
  delete(caller: Caller, userName: string): Promise<{ readonly hasConfiguredRights: boolean }>;
}

/** How many users one request creates. */
export const maxNewUsers = 500;

export function createAccounts(deps: {
  readonly users: UserStore;
  readonly systemAccounts: Pick<SystemAccountStore, 'give'>;
  readonly userVolumes: Pick<UserVolumeStore, 'set'>;
  readonly userNames: Pick<UserNameRules, 'resolveNew'>;
  readonly binding: Pick<AccountBinding, 'choose'>;
  readonly configuredRights: Pick<ConfiguredRights, 'givesRightsTo'>;
  readonly acting: ActingOnUsers;
  readonly logins: Pick<LoginSessions, 'endAllOfUser'>;
  /** Stops the user's servers, and lets none start until the work is done. */
  readonly withoutServersOf: (user: User, work: () => Promise<void>) => Promise<void>;
  /** Removes what is kept of the user's stopped servers, for ever. */
  readonly deleteServersOf: (user: User) => Promise<void>;
  readonly onDelete: (userName: string) => Promise<void>;
}): Accounts {
  const { users, userNames, acting, logins } = deps;

  return {
    async create(caller, names, { isAdmin, authenticator }) {
      if (names.length > maxNewUsers) {
        throw new HubError(
          'bad_request',
          text`At most ${maxNewUsers} users can be created at once.`,
        );
      }
      if (isAdmin) await acting.requireAdminPower(caller);
      const madeFor = deps.binding.choose(authenticator);
      const wanted = [...new Set(names.map((name) => userNames.resolveNew(name)))];
      const { items } = await users.list({ limit: wanted.length, onlyNames: wanted });
      const known = new Set(items.map(({ name }) => name));
      const missing = wanted.filter((name) => !known.has(name));
      for (const name of missing) await acting.requireMayUseName(caller, name);
      const created = await users.createMissing(missing, { isAdmin, isInvited: true, madeFor });
      if (created.length === 0)
        throw new HubError('conflict', text`All of these users exist already.`);
      const made = new Set(created.map(({ name }) => name));
      return { created, existing: wanted.filter((name) => !made.has(name)) };
    },

    async change(caller, userName, { name, isAdmin, systemAccount, volume }) {
      const user = await users.getByName(userName);
      await acting.requireMayTakeOver(caller, user);
      const newName =
        name === undefined || name === user.name ? user.name : userNames.resolveNew(name);
      // Before anything is changed: a request is done as a whole or not at all.
      if (newName !== user.name) await acting.requireMayUseName(caller, newName);
      const changesAdmin = isAdmin !== undefined && isAdmin !== user.isAdmin;
      if (changesAdmin || (systemAccount ?? volume) !== undefined)
        await acting.requireAdminPower(caller);
      if (changesAdmin && !isAdmin && isCallers(user, caller)) {
        throw new HubError('bad_request', text`You cannot take your own rights away.`, {
          hint: text`Another administrator can.`,
        });
      }
      if (newName !== user.name && (await users.findByName(newName)) !== undefined) {
        throw userNameTaken();
      }
      if (systemAccount !== undefined) {
        await deps.withoutServersOf(user, () => deps.systemAccounts.give(user, systemAccount));
      }
      if (volume !== undefined)
        await deps.withoutServersOf(user, () => deps.userVolumes.set(user, volume));
      if (newName !== user.name) {
        await deps.withoutServersOf(user, () => users.rename(user.id, newName));
      }
      if (changesAdmin) await users.setAdmin(user.id, isAdmin, { mayBeLast: isService(caller) });
      return users.getByName(newName);
    },

    async setSuspended(caller, userName, isSuspended) {
      const user = await users.getByName(userName);
      if (isCallers(user, caller)) {
        throw new HubError('bad_request', text`You cannot suspend your own account.`, {
          hint: text`Another administrator can.`,
        });
      }
      await acting.requireMayTakeOver(caller, user);
      if (user.isSuspended === isSuspended) return;
      const change = () =>
        users.setSuspended(user.id, isSuspended, { mayBeLast: isService(caller) });
      await (isSuspended ? deps.withoutServersOf(user, change) : change());
    },

    async delete(caller, userName) {
      const user = await users.getByName(userName);
      if (isCallers(user, caller)) {
        throw new HubError('bad_request', text`You cannot delete your own account.`);
      }
      // Else deleting the account and making it again would take it over with the rights that its name will get.
      const hasConfiguredRights = deps.configuredRights.givesRightsTo(user.name);
      const isTakeOver = user.isAdmin || hasConfiguredRights;
      if (isTakeOver) await acting.requireMayTakeOver(caller, user);
      else await acting.requireMayActOn(caller, user, ['delete:users']);
      await deps.withoutServersOf(user, async () => {
        await logins.endAllOfUser(user.id);
        await deps.deleteServersOf(user);
        await deps.onDelete(user.name);
        // Another administrator may have done it meanwhile.
        const isDeleted = await users.delete(user.id, { mayBeLast: isService(caller) });
        if (!isDeleted) throw noSuchUser();
      });
      return { hasConfiguredRights };
    },
  };
}

const isService = ({ owner, isCommand }: Caller) => owner.kind === 'service' && isCommand !== true;

function isCallers({ name }: User, { owner }: Caller): boolean {
  return owner.kind === 'user' && owner.name === name;
}
