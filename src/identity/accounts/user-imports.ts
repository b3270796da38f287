import { letOthers } from '../../platform/concurrency/let-others.ts';
import { HubError } from '../../platform/errors.ts';
import { joined, type Phrase, text } from '../../platform/texts/text.ts';
import type { UserNameRules } from '../authentication/user-name-rules.ts';
import type { Caller, Resource } from '../rbac/access-check.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import type { GroupStore } from '../users/group-store.ts';
import { changedInfo, noInfo } from '../users/user-info.ts';
import type { UserStore } from '../users/user-store.ts';
import type { Accounts } from './accounts.ts';
import type { ActingOnUsers } from './acting-on-users.ts';
import type { GroupMembers } from './group-members.ts';
import type { RoleAdministration } from './role-administration.ts';
import type { UserProfiles } from './user-profiles.ts';

/** A user to be made, as a list has one. */
export interface NewUser {
  readonly name: string;
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  readonly groups: readonly string[];
  readonly roles: readonly string[];
  readonly isAdmin: boolean;
}

export const importVerdicts = ['create', 'exists', 'duplicate', 'alike', 'invalid'] as const;

/** What becomes of a line of a list. */
export interface ImportVerdict {
  /** As the account will be called, where that can be. */
  readonly name: string;
  /** `alike`: differs only by capital letters from another name. */
  readonly verdict: (typeof importVerdicts)[number];
  /** Why not, or what is odd about it. */
  readonly reason?: Phrase;
}

/** By what the caller may do. */
type May = (scope: string, resource?: Resource) => boolean;

/** Users by the list: what a caller may make of it, and making them. */
export interface UserImports {
  /** Changes nothing. */
  judge(caller: Caller, may: May, wanted: readonly NewUser[]): Promise<readonly ImportVerdict[]>;
  /** Creates one with all that is said of them, or not. Throws `conflict` or `bad_request` for what `judge` refuses. */
  add(caller: Caller, may: May, wanted: NewUser): Promise<string>;
  /**
   * Deletes a user that the caller added at or after a time, an hour ago at most, and who has not been here since.
   * Throws `conflict` for any other, and as `Accounts.delete`.
   */
  undo(caller: Caller, userName: string, madeSince?: Date): Promise<void>;
}

/** How long users that were added can be taken back. */
export const undoMs = 3_600_000;

/** How many names one query asks for. */
const namesAtOnce = 500;

export function createUserImports(deps: {
  readonly users: Pick<UserStore, 'list' | 'getByName' | 'delete'>;
  readonly names: Pick<UserNameRules, 'resolveNew'>;
  readonly groups: Pick<GroupStore, 'getByName'>;
  readonly roles: Pick<RoleStore, 'getByName'>;
  readonly accounts: Pick<Accounts, 'create' | 'delete'>;
  readonly groupMembers: Pick<GroupMembers, 'add'>;
  readonly roleAdministration: Pick<RoleAdministration, 'assign' | 'fixedMembers'>;
  readonly userProfiles: Pick<UserProfiles, 'change'>;
  readonly acting: ActingOnUsers;
  /** Who added a user, by the id of that account. */
  readonly addedUsers: {
    get(userId: string): Promise<string | undefined>;
    set(userId: string, by: string, lifetimeMs: number): Promise<unknown>;
  };
}): UserImports {
  const { users, groups, roles, accounts, acting, addedUsers } = deps;

  async function existing(names: readonly string[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (let from = 0; from < names.length; from += namesAtOnce) {
      const onlyNames = names.slice(from, from + namesAtOnce);
      const { items } = await users.list({ limit: namesAtOnce, onlyNames });
      for (const { name } of items) found.add(name);
    }
    return found;
  }

  async function requireGroup(caller: Caller, may: May, name: string): Promise<void> {
    await groups.getByName(name);
    if (!may('groups', { kind: 'group', name }))
      throw new HubError('forbidden', text`You may not add users to the group “${name}”.`);
    await acting.requireMayAddTo(caller, name, []);
  }

  async function requireRole(caller: Caller, may: May, name: string): Promise<void> {
    const role = await roles.getByName(name);
    const fixed = deps.roleAdministration.fixedMembers(role, 'user');
    if (fixed !== undefined) throw new HubError('conflict', fixed);
    const excess = await acting.excessScopes(caller, role.scopes);
    if (!may('admin:roles') || excess.length > 0)
      throw new HubError('forbidden', text`You may not give the role “${name}”.`);
  }

  /** Why something is refused; each thing is asked once for all lines. */
  function createRefusals(caller: Caller, may: May) {
    const asked = new Map<string, Promise<Phrase | undefined>>();
    const once = (key: string, check: () => Promise<void>) => {
      const known = asked.get(key) ?? refusalOf(check);
      asked.set(key, known);
      return known;
    };
    return async (user: NewUser): Promise<Phrase | undefined> => {
      const refusals = [
        user.isAdmin && once('admin', () => acting.requireAdminPower(caller)),
        ...user.groups.map((name) => once(`group ${name}`, () => requireGroup(caller, may, name))),
        ...user.roles.map((name) => once(`role ${name}`, () => requireRole(caller, may, name))),
      ];
      for (const refusal of refusals) {
        const reason = refusal === false ? undefined : await refusal;
        if (reason !== undefined) return reason;
      }
      return undefined;
    };
  }

  function resolve({ name, displayName, email }: NewUser) {
    try {
      if ([name, displayName ?? ''].some(isFormula))
        throw new HubError('bad_request', text`It begins as a formula of a spreadsheet does.`);
      changedInfo(noInfo, { displayName, email });
      return { name: deps.names.resolveNew(name) };
    } catch (error) {
      return { name, reason: reasonOf(error) };
    }
  }

  async function judge(caller: Caller, may: May, wanted: readonly NewUser[]) {
    const refusal = createRefusals(caller, may);
    const resolved: { readonly name: string; readonly reason?: Phrase }[] = [];
    for (const [index, user] of wanted.entries()) {
      await letOthers(index);
      resolved.push(resolve(user));
    }
    const known = await existing([
      ...new Set(resolved.flatMap(({ name }) => [name, name.toLowerCase()])),
    ]);
    const seen = new Map<string, string>();
    const verdicts: ImportVerdict[] = [];
    for (const [index, user] of wanted.entries()) {
      await letOthers(index);
      const { name = '', reason } = resolved[index] ?? {};
      const other = seen.get(name.toLowerCase());
      const isAlike = known.has(name.toLowerCase()) || (other !== undefined && other !== name);
      if (reason !== undefined) verdicts.push({ name, verdict: 'invalid', reason });
      else if (other === name) verdicts.push({ name, verdict: 'duplicate' });
      else if (known.has(name)) verdicts.push({ name, verdict: 'exists' });
      else if (isAlike) verdicts.push({ name, verdict: 'alike' });
      else {
        const refused =
          (await refusalOf(() => acting.requireMayUseName(caller, name))) ?? (await refusal(user));
        if (refused !== undefined) verdicts.push({ name, verdict: 'invalid', reason: refused });
        else verdicts.push({ name, verdict: 'create', ...oddity(name) });
      }
      if (reason === undefined && other === undefined) seen.set(name.toLowerCase(), name);
    }
    return verdicts;
  }

  return {
    judge,

    async add(caller, may, wanted) {
      const [judged] = await judge(caller, may, [wanted]);
      if (judged?.verdict !== 'create') {
        const reason = judged?.reason ?? text`This user exists already.`;
        throw new HubError(judged?.verdict === 'invalid' ? 'bad_request' : 'conflict', reason);
      }
      const { isAdmin, displayName, email } = wanted;
      const { created } = await accounts.create(caller, [judged.name], { isAdmin });
      for (const user of created) {
        try {
          await addedUsers.set(user.id, keyOf(caller), undoMs);
          if (displayName !== undefined || email !== undefined)
            await deps.userProfiles.change(caller, user, { displayName, email });
          for (const group of wanted.groups)
            await deps.groupMembers.add(caller, group, [user.name]);
          for (const role of wanted.roles) {
            const members = { user: [user.name], group: [], service: [] };
            await deps.roleAdministration.assign(caller, await roles.getByName(role), members);
          }
        } catch (error) {
          // Half of what was asked for would look like all of it.
          await users.delete(user.id, { mayBeLast: true });
          throw error;
        }
      }
      return judged.name;
    },

    async undo(caller, userName, madeSince) {
      const { id, createdAt, lastActivityAt } = await users.getByName(userName);
      if (lastActivityAt !== undefined)
        throw new HubError('conflict', text`This account is in use.`);
      const isTheirs = (await addedUsers.get(id)) === keyOf(caller);
      if (!isTheirs || (madeSince !== undefined && createdAt < madeSince))
        throw new HubError(
          'conflict',
          text`No import of yours created this account within the last hour.`,
        );
      await accounts.delete(caller, userName);
    },
  };
}

const keyOf = ({ owner: { kind, name } }: Caller) => `${kind}:${name}`;

const isFormula = (typed: string) => /^[=+\-@]/.test(typed);

function oddity(name: string): Pick<ImportVerdict, 'reason'> {
  if (name.includes('@')) return { reason: text`The user name is an e-mail address.` };
  return /\s/.test(name) ? { reason: text`The user name has a space in it.` } : {};
}

async function refusalOf(check: () => Promise<void>): Promise<Phrase | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Of what is wrong with a line; throws what is no matter of it. */
function reasonOf(error: unknown): Phrase {
  if (!(error instanceof HubError) || error.code === 'storage_unavailable') throw error;
  const { message, hint } = error.shown;
  return hint === undefined ? message : joined([message, hint]);
}
