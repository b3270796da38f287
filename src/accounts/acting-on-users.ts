import { HubError } from '../errors.ts';
import { mayGrant, scopesBeyond } from '../rbac/access-check.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { Caller } from '../rbac/caller.ts';
import { adminScopes, grantableScopes } from '../rbac/default-roles.ts';
import { expandForAnyHolder, expandScopes } from '../rbac/expand-scopes.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import { canonicalScopeName, formatScope, parseScope, quoteScope } from '../rbac/scope.ts';
import { text } from '../texts/text.ts';
import type { User } from '../users/user-store.ts';

/**
 * The one rule for what is done to users: no caller acts on a user who may do more, nor brings a user under
 * their power. What is named `require…` throws `forbidden`.
 */
export interface ActingOnUsers {
  /** For what only administrators do to one another. */
  requireAdminPower(caller: Caller): Promise<void>;
  /** For what takes an account over or ends it: links for a password, names, deletion. */
  requireMayTakeOver(caller: Caller, user: User): Promise<void>;
  /**
   * For what is done with a user's tokens, logins and servers, with one of these scopes. Users act on
   * themselves, a scope without a filter was given for every user, and one that names the server was given for it.
   */
  requireMayActOn(
    caller: Caller,
    user: User,
    scopes: readonly string[],
    serverName?: string,
  ): Promise<void>;
  /**
   * For what is given by its scopes, as a role is: those that the caller does not hold and so may not give. A user
   * gives what `!user` and `self` say of themselves, but for what acts in the name of others (`forAnyHolder`): that
   * needs the same for everyone.
   */
  scopesBeyond(
    caller: Caller,
    scopes: readonly string[],
    options?: { readonly forAnyHolder: boolean },
  ): Promise<readonly string[]>;
  /** For who gets what a group may do, and comes under those whose scopes are filtered by it. */
  requireMayAddTo(caller: Caller, groupName: string, users: readonly User[]): Promise<void>;
}

/** Whether the filter of a scope names a group itself, and not its members. */
function isAboutGroups(scopeName: string): boolean {
  return /(?:^|:)groups(?:$|:)/.test(scopeName) && scopeName !== 'read:users:groups';
}

export function createActingOnUsers({
  authorizer,
  roles,
}: {
  readonly authorizer: Authorizer;
  readonly roles: Pick<RoleStore, 'heldBy' | 'list'>;
}): ActingOnUsers {
  const { catalogue } = authorizer;

  async function mayGiveAll(caller: Caller, wanted: ReadonlySet<string>): Promise<boolean> {
    const membership = await authorizer.membershipFor(caller.scopes);
    return mayGrant(grantableScopes(caller.scopes, catalogue), wanted, membership);
  }

  async function requireAdminPower(caller: Caller): Promise<void> {
    if (await mayGiveAll(caller, adminScopes(catalogue))) return;
    throw new HubError('forbidden', text`Only an administrator may do this to an administrator.`);
  }

  async function requireMayTakeOver(caller: Caller, user: User): Promise<void> {
    if (user.isAdmin) return requireAdminPower(caller);
    const held = await authorizer.scopesOfOwner({ kind: 'user', name: user.name });
    if (await mayGiveAll(caller, held)) return;
    // Users hold rights over themselves that an administrator of users holds over all.
    const others = [...held].filter((scope) => !scope.endsWith(`!user=${user.name}`));
    if (await mayGiveAll(caller, new Set(others))) return;
    throw new HubError('forbidden', text`This user may do more than you may.`);
  }

  /** What holders of scopes with this group as filter may do to its members. */
  async function powersOverMembers(groupName: string): Promise<ReadonlySet<string>> {
    const scopes = (await roles.list()).flatMap((role) => role.scopes);
    const names = new Set<string>();
    for (const text of expandScopes(scopes, { catalogue })) {
      const { name, filter } = parseScope(text);
      if (filter?.kind !== 'group' || filter.value !== groupName) continue;
      if (!isAboutGroups(name)) names.add(name);
    }
    return names;
  }

  return {
    requireAdminPower,
    requireMayTakeOver,

    async requireMayActOn(caller, user, scopes, serverName) {
      if (caller.owner.kind === 'user' && caller.owner.name === user.name) return;
      const isHeld = (filter: string) =>
        scopes.some((scope) => caller.scopes.has(canonicalScopeName(scope) + filter));
      if (isHeld('')) return;
      if (serverName !== undefined && isHeld(`!server=${user.name}/${serverName}`)) return;
      await requireMayTakeOver(caller, user);
    },

    async scopesBeyond(caller, scopes, { forAnyHolder = false } = { forAnyHolder: false }) {
      const held = grantableScopes(caller.scopes, catalogue);
      const membership = await authorizer.membershipFor(caller.scopes);
      const owner = forAnyHolder ? undefined : caller.owner;
      return scopes.filter((scope) => {
        const wanted = expandForAnyHolder([scope], catalogue, owner);
        return !mayGrant(held, wanted, membership);
      });
    },

    async requireMayAddTo(caller, groupName, users) {
      const held = await roles.heldBy({ kind: 'group', name: groupName });
      const scopes = held.flatMap((role) => role.scopes);
      if (!(await mayGiveAll(caller, expandScopes(scopes, { catalogue, owner: caller.owner })))) {
        const message = 'This group holds roles that may do more than you may.';
        throw new HubError('forbidden', message);
      }
      const powers = await powersOverMembers(groupName);
      if (powers.size === 0) return;
      const membership = await authorizer.membership();
      for (const user of users) {
        if (membership.membersOf(groupName).has(user.name)) continue;
        const filter = { kind: 'user', value: user.name } as const;
        const wanted = new Set([...powers].map((name) => formatScope({ name, filter })));
        const held = grantableScopes(caller.scopes, catalogue);
        const [beyond] = scopesBeyond(held, wanted, membership);
        if (beyond !== undefined) {
          throw new HubError('forbidden', text`You may not add this user to this group.`, {
            hint: text`Roles give rights over its members, and you lack ${quoteScope(beyond)}.`,
          });
        }
        await requireMayTakeOver(caller, user);
      }
    },
  };
}
