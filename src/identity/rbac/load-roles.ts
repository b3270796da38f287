import type { Logger } from 'pino';
import type { RoleConfig } from '../../platform/config/config.ts';
import type { GroupStore } from '../users/group-store.ts';
import { excessScopes } from './access-check.ts';
import { emptyMembership } from './membership.ts';
import {
  defaultRoles,
  findDefaultRole,
  type Role,
  type RoleAssignment,
  type RoleSubjectKind,
} from './role.ts';
import { runtimeOrigin } from './role-change-store.ts';
import type { RoleStore } from './role-store.ts';
import { expandForAnyHolder } from './scope.ts';
import type { ScopeCatalogue } from './scope-definitions.ts';
import { roleWarnings } from './validate-roles.ts';

export interface ApplyRolesContext {
  readonly roles: RoleStore;
  readonly catalogue: ScopeCatalogue;
  /** Makes sure the user exists; returns the name it goes by. */
  readonly ensureUser: (name: string) => Promise<string>;
  /** Makes sure the group exists; returns the name it goes by. */
  readonly ensureGroup: (name: string) => Promise<string>;
  readonly memberNamesByGroup: GroupStore['memberNamesByGroup'];
  /** The administrator flag of users. */
  readonly administrators: {
    list(): Promise<readonly string[]>;
    set(userName: string, isAdmin: boolean): Promise<void>;
  };
  /** `Authenticator.admin_users`, joined to the users of the role `admin` where the configuration lists those. */
  readonly adminUsers?: readonly string[];
  /** `Authenticator.manage_roles`: keep what an authenticator assigned. */
  readonly managesRoles?: boolean;
  readonly log: Logger;
}

/** Who holds a configured role; a kind that is absent is not decided by the configuration. */
type ConfiguredMembers = Partial<Record<RoleSubjectKind, readonly string[]>>;

const subjectKinds = ['user', 'group', 'service'] as const;

/**
 * Brings the store in line with a valid `Hub.load_roles`: defines the roles, removes those that
 * disappeared, and gives each role exactly the members that are listed. A kind of member that is not
 * listed keeps what the API gave. Missing users and groups are created. Returns who holds a role that they did not hold
 * before, for people.
 */
export async function applyRoles(
  configured: readonly RoleConfig[],
  context: ApplyRolesContext,
): Promise<readonly string[]> {
  const { roles, catalogue, log } = context;
  for (const warning of roleWarnings(configured)) log.warn(warning, 'role set by configuration');

  const wanted = wantedRoles(configured);
  const stored = await roles.list();
  const members = await ensureMembers(configured, context);
  const assignments = await roles.listAssignments();

  const changed = [...wanted.values()].filter(
    (role) => !stored.some((other) => equal(role, other)),
  );
  const remove = stored
    .filter(({ name, origin }) => isConfigured(origin) && !wanted.has(name))
    .map(({ name }) => name);
  for (const role of changed) {
    const before = stored.find(({ name }) => name === role.name);
    if (before !== undefined) reportGrowth(before, role, catalogue, log);
  }
  if (remove.length > 0) log.info({ roles: remove }, 'roles removed from configuration');
  const taken = stored.filter(({ name, origin }) => origin === runtimeOrigin && wanted.has(name));
  for (const { name, description, scopes } of taken) {
    log.warn(
      { role: name, former: { description, scopes } },
      'role made at run time replaced by configuration, its permissions and holders too',
    );
  }

  const changes = assignmentChanges(wanted, members, assignments, {
    managesRoles: context.managesRoles ?? false,
    takenRoles: new Set(taken.map(({ name }) => name)),
  });
  reportLosses(changes, assignments, remove, log);
  const groupNames = changes.assign.flatMap((each) =>
    each.subjectKind === 'group' ? [each.subjectName] : [],
  );
  const groupMembers = await context.memberNamesByGroup(groupNames);
  const assign = changes.assign.map((each) => ({
    ...each,
    users: (each.subjectKind === 'group' && groupMembers.get(each.subjectName)) || [],
  }));
  await roles.apply({ save: changed, remove, revoke: changes.revoke, assign });
  const given = assign.filter((each) => !assignments.some((other) => isSameGift(each, other)));
  return given.map(({ roleName: role, subjectKind: kind, subjectName: name, users }) => {
    log.info({ role, [kind]: name, ...(users.length > 0 && { users }) }, givenByConfiguration);
    return `${role} to ${kind} ${name}${users.length > 0 ? ` (${users.join(', ')})` : ''}`;
  });
}

/** Whoever holds a role may do more from now on. */
const givenByConfiguration = 'role given by the configuration';

function isSameGift(one: RoleAssignment, other: RoleAssignment): boolean {
  return equal({ ...other, origin: one.origin }, one);
}

function wantedRoles(configured: readonly RoleConfig[]): ReadonlyMap<string, Role> {
  const wanted = new Map<string, Role>(Object.entries(defaultRoles));
  for (const { name, description, scopes } of configured) {
    const base = findDefaultRole(name) ?? { name, description: '', scopes: [], origin: 'config' };
    wanted.set(name, {
      ...base,
      description: description ?? base.description,
      scopes: scopes ?? base.scopes,
      // One of the hub's own with other members alone stays the hub's own.
      origin: (description ?? scopes) === undefined ? base.origin : 'config',
    });
  }
  return wanted;
}

async function ensureMembers(
  configured: readonly RoleConfig[],
  { ensureUser, ensureGroup, administrators, adminUsers = [], log }: ApplyRolesContext,
): Promise<ReadonlyMap<string, ConfiguredMembers>> {
  const members = new Map<string, ConfiguredMembers>();
  for (const { name, users, groups, services } of configured) {
    const listed = name === 'admin' && users !== undefined ? [...users, ...adminUsers] : users;
    const userNames: string[] = [];
    for (const user of listed ?? []) userNames.push(await ensureUser(user));
    const groupNames: string[] = [];
    for (const group of groups ?? []) groupNames.push(await ensureGroup(group));
    const isFlag = name === 'admin' && listed !== undefined;
    if (isFlag) await syncAdministrators(userNames, administrators, log);
    members.set(name, {
      // Administrators are told by the flag of the user, so that there is one truth.
      ...(listed && { user: isFlag ? [] : userNames }),
      ...(groups && { group: groupNames }),
      ...(services && { service: services }),
    });
  }
  return members;
}

async function syncAdministrators(
  wanted: readonly string[],
  administrators: ApplyRolesContext['administrators'],
  log: Logger,
): Promise<void> {
  const current = new Set(await administrators.list());
  for (const user of new Set(wanted).difference(current)) {
    await administrators.set(user, true);
  }
  for (const user of current.difference(new Set(wanted))) {
    log.warn({ user }, 'user is no longer an administrator: not listed in the role admin');
    await administrators.set(user, false);
  }
}

function assignmentChanges(
  wanted: ReadonlyMap<string, Role>,
  members: ReadonlyMap<string, ConfiguredMembers>,
  current: readonly RoleAssignment[],
  {
    managesRoles,
    takenRoles,
  }: { readonly managesRoles: boolean; readonly takenRoles: ReadonlySet<string> },
): { assign: RoleAssignment[]; revoke: RoleAssignment[] } {
  const assign = [...wanted.keys()].flatMap((roleName) =>
    subjectKinds.flatMap((subjectKind) =>
      [...new Set(members.get(roleName)?.[subjectKind])]
        .map((subjectName) => ({ roleName, subjectKind, subjectName, origin: 'config' }))
        .filter((assignment) => !current.some((other) => equal(assignment, other))),
    ),
  );
  const revoke = current.filter(({ roleName, subjectKind, subjectName, origin }) => {
    const listed = members.get(roleName)?.[subjectKind];
    if (listed !== undefined) return !listed.includes(subjectName);
    if (isConfigured(origin)) return true;
    // Else a role made in time would give its maker whatever the configuration will allow under that name.
    if (takenRoles.has(roleName)) return true;
    // No one would ever take back what an authenticator gave before it stopped managing roles.
    return origin !== 'api' && !managesRoles;
  });
  return { assign, revoke };
}

/** Says of each role who loses it that was given it at run time: it stands in no file. */
function reportLosses(
  { revoke }: { readonly revoke: readonly RoleAssignment[] },
  current: readonly RoleAssignment[],
  removedRoles: readonly string[],
  log: Logger,
): void {
  const withRole = current.filter(({ roleName }) => removedRoles.includes(roleName));
  const lost = new Set([...revoke, ...withRole])
    .values()
    .filter((each) => each.origin === runtimeOrigin);
  for (const [role, assignments] of Map.groupBy(lost, ({ roleName }) => roleName)) {
    const holders = assignments.map(
      ({ subjectKind, subjectName }) => `${subjectKind} ${subjectName}`,
    );
    log.warn({ role, holders }, 'role assignment revoked by configuration');
  }
}

function reportGrowth(before: Role, after: Role, catalogue: ScopeCatalogue, log: Logger): void {
  const had = expandForAnyHolder(before.scopes, catalogue);
  const gained = after.scopes.filter(
    (scope) =>
      excessScopes(had, expandForAnyHolder([scope], catalogue), emptyMembership).length > 0,
  );
  if (gained.length > 0) {
    log.warn({ role: after.name, scopes: gained }, 'role has obtained extra permissions');
  }
}

function isConfigured(origin: string): boolean {
  return origin === 'config' || origin === 'default';
}

function equal<Value extends object>(left: Value, right: Value): boolean {
  return (Object.keys(left) as (keyof Value)[]).every(
    (key) => JSON.stringify(left[key]) === JSON.stringify(right[key]),
  );
}
