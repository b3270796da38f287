import type { RoleConfig } from '../../platform/config/config.ts';
import { versionOf } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import { fieldError } from '../../platform/http/field-error.ts';
import { joined, type Text, text } from '../../platform/texts/text.ts';
import type { Caller } from '../rbac/access-check.ts';
import { findDefaultRole, type Role, type RoleSubjectKind } from '../rbac/role.ts';
import {
  type RoleChangeStore,
  type RoleMembers,
  runtimeOrigin,
} from '../rbac/role-change-store.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import { readScope } from '../rbac/scope.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import { describeScopes } from '../rbac/scope-descriptions.ts';
import { roleProblems } from '../rbac/validate-roles.ts';
import type { ActingOnUsers } from './acting-on-users.ts';

/**
 * Roles at run time. No caller gives, changes or takes away what they could not do themselves: of every role
 * that is touched they hold all scopes, those it had and those it gets. What the configuration decides stays as it is.
 * All of these throw `forbidden` for a scope that the caller lacks, and `conflict` for what is fixed or has just
 * been changed by another.
 */
export interface RoleAdministration {
  /** Throws `conflict` when the name is taken and `bad_request` for what is wrong with it. */
  create(caller: Caller, role: RoleDefinition): Promise<Role>;
  /** Throws `bad_request` for what is wrong with it. */
  change(
    caller: Caller,
    role: Role,
    change: {
      readonly description?: string | undefined;
      readonly scopes?: readonly string[] | undefined;
    },
  ): Promise<Role>;
  delete(caller: Caller, role: Role): Promise<void>;
  /** Throws `bad_request` for whom cannot have it or does not exist. */
  assign(caller: Caller, role: Role, members: RoleMembers): Promise<void>;
  /** Who does not hold it is passed over. */
  takeAway(caller: Caller, role: Role, members: RoleMembers): Promise<void>;
  /** Whether its name, text and scopes can be changed here. */
  isChangeable(role: Role): boolean;
  /** Why members of this kind cannot be given or taken here; undefined when they can. */
  fixedMembers(role: Role, kind: RoleSubjectKind): Text | undefined;
  /** Takes over `Hub.load_roles` of a new configuration. */
  configure(configured: readonly RoleConfig[]): void;
}

export type RoleDefinition = Pick<Role, 'name' | 'description' | 'scopes'>;

/** What there may be of roles that are made at run time. */
export const roleLimits = {
  roles: 500,
  scopes: 200,
  /** Characters. */
  description: 500,
  /** Characters; longer than any scope with a filter that names something. */
  scope: 800,
} as const;

const kinds = ['user', 'group', 'service'] as const;

export function createRoleAdministration(deps: {
  readonly roles: Pick<RoleStore, 'listAssignments'>;
  readonly roleChanges: RoleChangeStore;
  readonly acting: Pick<ActingOnUsers, 'excessScopes'>;
  readonly catalogue: ScopeCatalogue;
  readonly serviceNames: () => readonly string[];
  /** `Hub.load_roles`. */
  readonly configured: readonly RoleConfig[];
  /** `Authenticator.manage_roles`. */
  readonly managesRoles: boolean;
}): RoleAdministration {
  const { roles, roleChanges: changes, acting, catalogue, managesRoles } = deps;
  let { configured } = deps;

  async function requireMayGive(caller: Caller, scopes: readonly string[]): Promise<void> {
    const excess = await acting.excessScopes(caller, scopes);
    if (excess.length === 0) return;
    const lacking = describeScopes(excess, catalogue);
    const listed = joined(
      lacking.slice(0, 5).map(({ scope, description }) => text`“${description}” (${scope})`),
      ', ',
    );
    throw new HubError('forbidden', text`This role may do more than you may.`, {
      hint: lacking.length > 5 ? text`You lack ${listed} and others.` : text`You lack ${listed}.`,
    });
  }

  function requireValid(role: RoleConfig): void {
    const [problem] = roleProblems(role, { catalogue, serviceNames: deps.serviceNames() });
    if (problem === undefined) return;
    throw fieldError(problem.path, problem.message);
  }

  function requireValidDefinition({
    description,
    scopes,
  }: Pick<RoleDefinition, 'description' | 'scopes'>): void {
    const problem = definitionProblem(description, scopes);
    if (problem !== undefined) throw new HubError('bad_request', problem);
  }

  function requireChangeable({ name, origin }: Role): void {
    if (origin === runtimeOrigin) return;
    throw new HubError('conflict', text`The role ${name} comes from the configuration.`, {
      hint: text`Change it in Hub.load_roles of the configuration file, then run ${hubCommand('reload')}.`,
    });
  }

  function fixedMembers({ name }: Role, kind: RoleSubjectKind): Text | undefined {
    if (managesRoles && kind !== 'service') {
      return text`The provider of the login gives roles to users and groups (Authenticator.manage_roles).`;
    }
    if (kind === 'user' && name === 'user') return text`Every user holds the role user.`;
    if (kind === 'user' && name === 'admin') {
      return text`A user holds the role admin by being an administrator; change the user instead.`;
    }
    const listed = configured.find((role) => role.name === name)?.[`${kind}s`];
    if (listed === undefined) return undefined;
    return text`The configuration says who holds the role ${name} (Hub.load_roles).`;
  }

  function requireFreeMembers(role: Role, members: RoleMembers): void {
    for (const kind of kinds) {
      const reason = members[kind].length === 0 ? undefined : fixedMembers(role, kind);
      if (reason !== undefined) throw new HubError('conflict', reason);
    }
  }

  function requireUnchanged(isDone: boolean, { name }: Role): void {
    if (isDone) return;
    const message = text`The role ${name} has just been changed or deleted.`;
    throw new HubError('conflict', message, { hint: text`Read it again before you change it.` });
  }

  return {
    isChangeable: ({ origin }) => origin === runtimeOrigin,
    fixedMembers,
    configure(next) {
      configured = next;
    },

    async create(caller, { name, description, scopes: given }) {
      const scopes = [...new Set(given)];
      requireValidDefinition({ description, scopes });
      if (findDefaultRole(name) === undefined) requireValid({ name, description, scopes });
      await requireMayGive(caller, scopes);
      const role = { name, description, scopes, origin: runtimeOrigin };
      switch (await changes.create(role, roleLimits.roles)) {
        case 'created':
          return role;
        case 'taken':
          throw new HubError('conflict', text`There is a role ${name} already.`);
        case 'full':
          throw new HubError('conflict', text`There are ${roleLimits.roles} roles already.`, {
            hint: text`Delete some that no one needs, or define roles in the configuration file.`,
          });
      }
    },

    async change(caller, before, { description = before.description, scopes: given }) {
      requireChangeable(before);
      const scopes = [...new Set(given ?? before.scopes)];
      requireValidDefinition({ description, scopes });
      const held = await roles.listAssignments({ roleName: before.name });
      const namesOf = (kind: RoleSubjectKind) =>
        held.filter((each) => each.subjectKind === kind).map((each) => each.subjectName);
      // With its holders: a scope for services alone is none for users.
      const holders = { users: namesOf('user'), groups: namesOf('group') };
      requireValid({ name: before.name, description, scopes, ...holders });
      await requireMayGive(caller, [...new Set([...before.scopes, ...scopes])]);
      const after = { ...before, description, scopes };
      requireUnchanged(await changes.replace(before, after), before);
      return after;
    },

    async delete(caller, role) {
      requireChangeable(role);
      await requireMayGive(caller, role.scopes);
      requireUnchanged(await changes.delete(role), role);
    },

    async assign(caller, role, members) {
      requireFreeMembers(role, members);
      const { name, scopes } = role;
      const isDefault = findDefaultRole(name) !== undefined;
      requireValid({
        name,
        ...(!isDefault && { scopes: [...scopes] }),
        ...(members.user.length > 0 && { users: [...members.user] }),
        ...(members.group.length > 0 && { groups: [...members.group] }),
        ...(members.service.length > 0 && { services: [...members.service] }),
      });
      await requireMayGive(caller, scopes);
      requireUnchanged(await changes.assign(role, members), role);
    },

    async takeAway(caller, role, members) {
      requireFreeMembers(role, members);
      await requireMayGive(caller, role.scopes);
      const held = await roles.listAssignments({ roleName: role.name });
      const holding = (kind: RoleSubjectKind) =>
        held
          .filter(
            ({ subjectKind, subjectName }) =>
              subjectKind === kind && members[kind].includes(subjectName),
          )
          .map(({ subjectName }) => subjectName);
      const from = { user: holding('user'), group: holding('group'), service: holding('service') };
      requireUnchanged(await changes.takeAway(role, from), role);
    },
  };
}

function definitionProblem(description: string, scopes: readonly string[]): Text | undefined {
  if (description.length > roleLimits.description) {
    return text`description: must have ${roleLimits.description} characters at most.`;
  }
  if (/\p{Cc}/u.test(description) || !description.isWellFormed()) {
    return text`description: must be one line of text without control characters.`;
  }
  if (scopes.length > roleLimits.scopes) {
    return text`scopes: a role has ${roleLimits.scopes} scopes at most.`;
  }
  if (scopes.some((scope) => scope.length > roleLimits.scope)) {
    return text`scopes: a scope has ${roleLimits.scope} characters at most.`;
  }
  // It means what the owner of a token may do; a role of an owner would stand for itself.
  if (scopes.some((scope) => readScope(scope).scope?.name === 'inherit')) {
    return text`scopes: inherit stands for all roles of an owner, so no role can hold it.`;
  }
  return undefined;
}

/** Tells whether a role has changed: two with the same version are defined alike. */
export function versionOfRole({ description, scopes, origin }: Role): string {
  return versionOf([description, scopes, origin]);
}
