import type { UserNameRules } from '../authentication/user-name-rules.ts';
import { HubError } from '../errors.ts';
import { mayGrant } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import { adminScopes } from '../rbac/default-roles.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { User, UserStore } from '../users/user-store.ts';

/** Creating, changing and deleting people, with the rules that hold whoever asks for it. */
export interface Accounts {
  /** Creates the users that do not exist yet. Throws `conflict` when all of them do. */
  create(
    caller: Caller,
    names: readonly string[],
    options: { readonly isAdmin: boolean },
  ): Promise<User[]>;
  change(
    caller: Caller,
    userName: string,
    change: { readonly name?: string; readonly isAdmin?: boolean },
  ): Promise<User>;
  /** Stops the user's servers, ends the sessions, and deletes everything of theirs. */
  delete(caller: Caller, userName: string): Promise<void>;
  /** Throws `forbidden` when the user may do more than the caller: nobody takes over such an account. */
  requireMayActOn(caller: Caller, user: User): Promise<void>;
}

/** How many users one request creates. */
export const mostNewUsers = 500;

export function createAccounts(deps: {
  readonly users: UserStore;
  readonly names: Pick<UserNameRules, 'resolveNew'>;
  readonly authority: Authority;
  readonly logins: Pick<LoginSessions, 'endAllOfUser'>;
  /** Stops the user's servers, and lets none start until the work is done. */
  readonly withoutServersOf: (user: User, work: () => Promise<void>) => Promise<void>;
  readonly onDelete: (userName: string) => Promise<void>;
}): Accounts {
  const { users, names: nameRules, authority, logins } = deps;

  /** Nobody makes, changes or removes an account that may do more than they may themselves. */
  async function requireMayGrantAdmin(caller: Caller): Promise<void> {
    const wanted = adminScopes(authority.catalogue);
    if (mayGrant(caller.scopes, wanted, await authority.membershipFor(caller.scopes))) return;
    throw new HubError('forbidden', 'Only an administrator may do this to an administrator.');
  }

  async function requireMayActOn(caller: Caller, user: User): Promise<void> {
    if (user.isAdmin) return requireMayGrantAdmin(caller);
    const held = await authority.scopesOfOwner({ kind: 'user', name: user.name });
    if (mayGrant(caller.scopes, held, await authority.membershipFor(caller.scopes))) return;
    // Users hold rights over themselves that an administrator of users holds over everybody.
    const own = new Set([...held].filter((scope) => !scope.endsWith(`!user=${user.name}`)));
    if (mayGrant(caller.scopes, own, await authority.membershipFor(caller.scopes))) return;
    throw new HubError('forbidden', 'This user may do more than you may.');
  }

  return {
    requireMayActOn,

    async create(caller, names, { isAdmin }) {
      if (names.length > mostNewUsers) {
        throw new HubError('bad_request', `At most ${mostNewUsers} users can be created at once.`);
      }
      if (isAdmin) await requireMayGrantAdmin(caller);
      const wanted = [...new Set(names.map((name) => nameRules.resolveNew(name)))];
      const created = await users.createMissing(wanted, { isAdmin, isInvited: true });
      if (created.length === 0) throw new HubError('conflict', 'All of these users exist already.');
      return created;
    },

    async change(caller, userName, { name, isAdmin }) {
      const user = await users.getByName(userName);
      await requireMayActOn(caller, user);
      if (isAdmin !== undefined && isAdmin !== user.isAdmin) {
        await requireMayGrantAdmin(caller);
        await users.setAdmin(user.id, isAdmin);
      }
      const newName =
        name === undefined || name === user.name ? user.name : nameRules.resolveNew(name);
      if (newName !== user.name) {
        await deps.withoutServersOf(user, () => users.rename(user.id, newName));
      }
      return users.getByName(newName);
    },

    async delete(caller, userName) {
      const user = await users.getByName(userName);
      if (caller.owner.kind === 'user' && caller.owner.name === user.name) {
        throw new HubError('bad_request', 'You cannot delete your own account.');
      }
      await requireMayActOn(caller, user);
      await logins.endAllOfUser(user.id);
      await deps.withoutServersOf(user, async () => {
        await deps.onDelete(user.name);
        await users.delete(user.id);
      });
    },
  };
}
