import { serverNamePattern } from '../../platform/config/common-schema.ts';
import type { RoleConfig } from '../../platform/config/config.ts';
import { closestName } from '../../platform/config/suggestion.ts';
import { type ConfigProblem, HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import { validateGroupName, validateUserName } from '../users/user-name.ts';
import { findDefaultRole } from './role.ts';
import { quoteScope, readScope, type ScopeFilter, splitServerValue } from './scope.ts';
import {
  isForServicesOnly,
  metascopes,
  type ScopeCatalogue,
  scopeDefinitions,
} from './scope-definitions.ts';

const roleName = /^[a-z][a-z0-9\-_~.]{1,253}[a-z0-9]$/;

export interface RoleValidationContext {
  readonly catalogue: ScopeCatalogue;
  /** Names of the services of the same configuration. */
  readonly serviceNames: Iterable<string>;
  /** `Authenticator.manage_roles`: the provider decides which users and groups hold a role. */
  readonly managesRoles?: boolean;
}

/** What is wrong with a role, and where in it. */
export interface RoleProblem {
  readonly path: string;
  readonly message: Phrase;
}

/** Checks `Hub.load_roles` and lists every problem with its dotted path. */
export function validateRoles(
  roles: readonly RoleConfig[],
  context: RoleValidationContext,
): ConfigProblem[] {
  return roles.flatMap((role, index) => {
    const path = `Hub.load_roles[${index}]`;
    const firstIndex = roles.findIndex(({ name }) => name === role.name);
    const problems = roleProblems(role, context);
    if (firstIndex !== index) {
      problems.unshift({
        path: 'name',
        message: `the role ${role.name} is already defined in Hub.load_roles[${firstIndex}]`,
      });
    }
    return problems.map((problem) => ({
      path: `${path}.${problem.path}`,
      message: String(problem.message),
    }));
  });
}

/** Every problem of one role, wherever it is defined; the paths begin at the role. */
export function roleProblems(
  role: RoleConfig,
  { catalogue, serviceNames, managesRoles = false }: RoleValidationContext,
): RoleProblem[] {
  const services = new Set(serviceNames);
  return [
    ...nameProblems(role.name),
    ...defaultRoleProblems(role),
    ...servicesOnlyProblems(role, catalogue),
    ...(managesRoles ? managedProblems(role) : []),
    ...eachProblem('scopes', role.scopes, (scope) => scopeProblem(scope, catalogue)),
    ...eachProblem('users', role.users, (name) => problemOf(validateUserName, name)),
    ...eachProblem('groups', role.groups, (name) => problemOf(validateGroupName, name)),
    ...eachProblem('services', role.services, (name) =>
      services.has(name) ? undefined : text`there is no service ${quoteScope(name)}`,
    ),
  ];
}

/** Lists what is allowed in `Hub.load_roles` but probably not meant. */
export function roleWarnings(roles: readonly RoleConfig[]): ConfigProblem[] {
  return roles.flatMap(({ name, scopes }, index) => {
    const path = `Hub.load_roles[${index}].scopes`;
    // One who lists scopes of `self` has left some out on purpose.
    const isOwn = (scope: string) => scope === 'self' || scope.endsWith('!user');
    if (name === 'user' && scopes !== undefined && !scopes.some(isOwn)) {
      return [{ path, message: 'without self, users cannot reach their own servers and tokens' }];
    }
    const isEmpty =
      scopes === undefined ? findDefaultRole(name) === undefined : scopes.length === 0;
    return isEmpty ? [{ path, message: `the role ${name} has no scopes and allows nothing` }] : [];
  });
}

/** Tells what is wrong with a scope as written, or undefined when it can be used. */
export function scopeProblem(written: string, catalogue: ScopeCatalogue): Phrase | undefined {
  const { scope, problem } = readScope(written);
  if (scope === undefined) return problem;
  if (catalogue.get(scope.name) === undefined) {
    const closest = closestName(scope.name, Object.keys(scopeDefinitions));
    return closest === undefined
      ? text`there is no scope ${quoteScope(scope.name)}`
      : text`there is no scope ${quoteScope(scope.name)}; did you mean ${quoteScope(closest)}?`;
  }
  if (metascopes.has(scope.name) && scope.filter !== undefined) {
    return text`the scope ${scope.name} takes no filter`;
  }
  const filterProblem = scope.filter && problemOfFilter(scope.filter);
  return filterProblem && text`the filter of the scope ${quoteScope(written)} ${filterProblem}`;
}

/** A filter that nothing can ever match is a mistake, and one that reads as if it meant all is a trap. */
function problemOfFilter({ kind, value }: ScopeFilter): Phrase | undefined {
  if (value === undefined) return undefined;
  const { userName, serverName } =
    kind === 'server' ? splitServerValue(value) : { userName: value, serverName: '' };
  if (userName === '*' || serverName === '*') {
    return text`is a wildcard: filters take whole names only; leave the filter out for all`;
  }
  if (kind === 'service') return undefined;
  const validate = kind === 'group' ? validateGroupName : validateUserName;
  const problem = problemOf(validate, userName);
  if (problem !== undefined) return text`names none: ${problem}`;
  const isName = serverName === '' || serverNamePattern.test(serverName);
  return isName ? undefined : text`names none: this cannot be the name of a server`;
}

function nameProblems(name: string): RoleProblem[] {
  if (roleName.test(name)) return [];
  return [
    {
      path: 'name',
      message: text`must have 3 to 255 characters: a-z, 0-9 and - _ ~ . only, beginning with a letter and ending with a letter or digit`,
    },
  ];
}

function defaultRoleProblems({ name, description, scopes, users }: RoleConfig): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (name === 'admin' && description !== undefined) {
    problems.push({ path: 'description', message: 'the role admin cannot be redescribed' });
  }
  if (name === 'admin' && scopes !== undefined) {
    problems.push({ path: 'scopes', message: 'what the role admin allows cannot be changed' });
  }
  if (name === 'user' && users !== undefined) {
    problems.push({
      path: 'users',
      message: 'every user holds the role user; to allow more to some users, define another role',
    });
  }
  return problems;
}

function servicesOnlyProblems(
  { name, scopes = [], users = [], groups = [] }: RoleConfig,
  catalogue: ScopeCatalogue,
): RoleProblem[] {
  const hasUsers = users.length > 0 || groups.length > 0 || findDefaultRole(name) !== undefined;
  if (!hasUsers) return [];
  return scopes.flatMap((scope, index) =>
    isForServicesOnly(scope, catalogue)
      ? [
          {
            path: `scopes[${index}]`,
            message: text`the scope ${scope} is for services alone: give it a role without users and groups`,
          },
        ]
      : [],
  );
}

function managedProblems({ users, groups }: RoleConfig): ConfigProblem[] {
  const message = 'cannot be given while Authenticator.manage_roles lets the provider assign roles';
  return [
    ...(users === undefined ? [] : [{ path: 'users', message }]),
    ...(groups === undefined ? [] : [{ path: 'groups', message }]),
  ];
}

function problemOf(validate: (name: string) => string, name: string): Phrase | undefined {
  try {
    validate(name);
    return undefined;
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    return error.shown.message;
  }
}

function eachProblem(
  key: string,
  entries: readonly string[] | undefined,
  check: (entry: string) => Phrase | undefined,
): RoleProblem[] {
  return (entries ?? []).flatMap((entry, index) => {
    const message = check(entry);
    return message === undefined ? [] : [{ path: `${key}[${index}]`, message }];
  });
}
