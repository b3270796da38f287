import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { type Caller, excessScopes, mayGrant } from '../rbac/access-check.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { Owner } from '../rbac/owner.ts';
import { adminScopes, grantableScopes } from '../rbac/role.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import {
  canonicalScopeName,
  expandForAnyHolder,
  expandScopes,
  formatScope,
  parseScope,
  quoteScope,
} from '../rbac/scope.ts';
import type { User } from '../users/user-store.ts';
import type { ConfiguredRights } from './configured-rights.ts';

/**
 * The one rule for what is done to users and groups: no caller acts on one who may do more, nor brings a user under
 * their power. What the configuration gives to a name counts as held by it. What is named `require…` throws
 * `forbidden`.
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
  excessScopes(
    caller: Caller,
    scopes: readonly string[],
    options?: { readonly forAnyHolder: boolean },
  ): Promise<readonly string[]>;
  /** For making a user of this name, who may have no account yet, or giving the name to another user. */
  requireMayUseName(caller: Caller, userName: string): Promise<void>;
  /**
   * For making a group and for who gets what it may do, and comes under those whose scopes are filtered by it. The
   * group need not exist.
   */
  requireMayAddTo(caller: Caller, groupName: string, users: readonly User[]): Promise<void>;
  /** For what ends a group to which the configuration gives something: that comes back with the name. */
  requireMayDeleteGroup(caller: Caller, groupName: string): Promise<void>;
  /** For changing what only the members of a group may pass. */
  requireMayOpenTo(caller: Caller, groupName: string): Promise<void>;
}

/** Whether the filter of a scope names a group itself, and not its members. */
function isAboutGroups(scopeName: string): boolean {
  return /(?:^|:)groups(?:$|:)/.test(scopeName) && scopeName !== 'read:users:groups';
}

const isAbout = (userName: string) => (scope: string) => scope.endsWith(`!user=${userName}`);

export function createActingOnUsers({
  authorizer,
  roles,
  configuredRights: configured,
}: {
  readonly authorizer: Authorizer;
  readonly roles: Pick<RoleStore, 'heldBy' | 'list'>;
  readonly configuredRights: ConfiguredRights;
}): ActingOnUsers {
  const { catalogue } = authorizer;

  async function excess(caller: Caller, wanted: ReadonlySet<string>): Promise<readonly string[]> {
    const membership = await authorizer.membershipFor(caller.scopes);
    return excessScopes(grantableScopes(caller.scopes, catalogue), wanted, membership);
  }

  async function mayGiveAll(caller: Caller, wanted: ReadonlySet<string>): Promise<boolean> {
    return (await excess(caller, wanted)).length === 0;
  }

  const hasAdminPower = (caller: Caller) => mayGiveAll(caller, adminScopes(catalogue));

  async function requireAdminPower(caller: Caller): Promise<void> {
    if (await hasAdminPower(caller)) return;
    throw new HubError('forbidden', text`Only an administrator may do this to an administrator.`);
  }

  /** Of scopes as written, those that a caller lacks and an owner would get. */
  async function missingOf(
    caller: Caller,
    written: readonly string[],
    owner: Owner,
  ): Promise<readonly string[]> {
    const missing: string[] = [];
    for (const scope of new Set(written)) {
      const lacking = await excess(caller, expandScopes([scope], { catalogue, owner }));
      // Users hold rights over themselves that an administrator of users holds over all.
      const isOwn = owner === caller.owner ? () => false : isAbout(owner.name);
      if (!lacking.every(isOwn)) missing.push(scope);
    }
    return missing;
  }

  async function scopesOfGroup(groupName: string): Promise<readonly string[]> {
    const held = await roles.heldBy({ kind: 'group', name: groupName });
    return [...held.flatMap((role) => role.scopes), ...configured.scopesOf('group', groupName)];
  }

  /** What a user of this name gets by the configuration, by themselves and by groups. */
  async function configuredScopesOfUser(name: string): Promise<readonly string[]> {
    const ofGroups = await Promise.all(configured.groupsOf(name).map(scopesOfGroup));
    return [...configured.scopesOf('user', name), ...ofGroups.flat()];
  }

  async function requireMayTakeOver(caller: Caller, { name, isAdmin }: User): Promise<void> {
    if (isAdmin || configured.isAdministrator(name)) return requireAdminPower(caller);
    const owner = { kind: 'user', name } as const;
    const held = await excess(caller, await authorizer.scopesOfOwner(owner));
    const configuredScopes = await configuredScopesOfUser(name);
    const missing = await missingOf(caller, configuredScopes, owner);
    if (held.every(isAbout(name)) && missing.length === 0) return;
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

  function requireNone(missing: readonly string[]): void {
    if (missing.length === 0) return;
    throw new HubError('forbidden', text`This group holds roles that may do more than you may.`, {
      hint: text`You lack ${missing.slice(0, 5).map(quoteScope).join(', ')}.`,
    });
  }

  async function requireMayOpenTo({ owner, scopes }: Caller, groupName: string): Promise<void> {
    const [setting] = configured.openedTo(groupName);
    if (setting === undefined) return;
    const { groupsOf } = await authorizer.membership();
    const joined = owner.kind === 'user' ? [...groupsOf(owner.name)] : [];
    const around = [
      ...configured.groupsAround(owner.kind, owner.name),
      ...joined.flatMap((group) => configured.groupsAround('group', group)),
    ];
    if (around.includes(groupName.normalize('NFC'))) return;
    if (await hasAdminPower({ owner, scopes })) return;
    throw new HubError('forbidden', text`This group may do what you may not: ${setting}.`, {
      hint: text`Be a member of it yourself, or hold the scope ${`groups!group=${groupName}`} by a role of Hub.load_roles that lists you.`,
    });
  }

  /** For who gets what the configuration opens to groups by a name, or may give it to others. */
  async function requireMayOpenAround(
    caller: Caller,
    kind: 'user' | 'group',
    name: string,
  ): Promise<void> {
    for (const group of configured.groupsAround(kind, name)) await requireMayOpenTo(caller, group);
  }

  return {
    requireAdminPower,
    requireMayTakeOver,
    requireMayOpenTo,

    async requireMayActOn(caller, user, scopes, serverName) {
      if (caller.owner.kind === 'user' && caller.owner.name === user.name) return;
      const isHeld = (filter: string) =>
        scopes.some((scope) => caller.scopes.has(canonicalScopeName(scope) + filter));
      if (isHeld('')) return;
      if (serverName !== undefined && isHeld(`!server=${user.name}/${serverName}`)) return;
      await requireMayTakeOver(caller, user);
    },

    async excessScopes(caller, scopes, { forAnyHolder = false } = { forAnyHolder: false }) {
      const held = grantableScopes(caller.scopes, catalogue);
      const membership = await authorizer.membershipFor(caller.scopes);
      const owner = forAnyHolder ? undefined : caller.owner;
      return scopes.filter((scope) => {
        const wanted = expandForAnyHolder([scope], catalogue, owner);
        return !mayGrant(held, wanted, membership);
      });
    },

    async requireMayUseName(caller, userName) {
      const where = text`The configuration gives rights to this name; change it there first, or let an administrator do this.`;
      if (configured.isAdministrator(userName) && !(await hasAdminPower(caller))) {
        throw new HubError(
          'forbidden',
          text`The configuration makes ${userName} an administrator, which you are not.`,
          { hint: where },
        );
      }
      const written = await configuredScopesOfUser(userName);
      const [missing] = await missingOf(caller, written, { kind: 'user', name: userName });
      if (missing !== undefined) {
        throw new HubError(
          'forbidden',
          text`The configuration lets ${userName} do more than you may: ${quoteScope(missing)}.`,
          { hint: where },
        );
      }
      await requireMayOpenAround(caller, 'user', userName);
    },

    async requireMayDeleteGroup(caller, groupName) {
      const written = configured.scopesOf('group', groupName);
      requireNone(await missingOf(caller, written, caller.owner));
      await requireMayOpenAround(caller, 'group', groupName);
    },

    async requireMayAddTo(caller, typedName, users) {
      const groupName = typedName.normalize('NFC');
      requireNone(await missingOf(caller, await scopesOfGroup(groupName), caller.owner));
      await requireMayOpenAround(caller, 'group', groupName);
      const powers = await powersOverMembers(groupName);
      if (powers.size === 0) return;
      const membership = await authorizer.membership();
      for (const user of users) {
        if (membership.membersOf(groupName).has(user.name)) continue;
        const filter = { kind: 'user', value: user.name } as const;
        const wanted = new Set([...powers].map((name) => formatScope({ name, filter })));
        const [missing] = await excess(caller, wanted);
        if (missing !== undefined) {
          throw new HubError('forbidden', text`You may not add this user to this group.`, {
            hint: text`Roles give rights over its members, and you lack ${quoteScope(missing)}.`,
          });
        }
        await requireMayTakeOver(caller, user);
      }
    },
  };
}
