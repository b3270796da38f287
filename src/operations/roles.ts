import { z } from 'zod';
import type { ActingOnUsers } from '../identity/accounts/acting-on-users.ts';
import {
  type RoleAdministration,
  roleLimits,
  versionOfRole,
} from '../identity/accounts/role-administration.ts';
import type { Caller } from '../identity/rbac/access-check.ts';
import type { Role, RoleAssignment, RoleSubjectKind } from '../identity/rbac/role.ts';
import { type RoleMembers, runtimeOrigin } from '../identity/rbac/role-change-store.ts';
import type { RoleStore } from '../identity/rbac/role-store.ts';
import { isForServicesOnly, type ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import { describeScopes } from '../identity/rbac/scope-descriptions.ts';
import { maxNameLength } from '../identity/users/user-name.ts';
import {
  type ModelOf,
  type OperationDeclaration,
  type OperationRequest,
  operation,
  view,
} from './operation.ts';
import { listOptionsOf, listQuery } from './users-query.ts';

export interface Deps {
  readonly roles: Pick<RoleStore, 'getByName' | 'list' | 'listHolders' | 'countHolders'>;
  readonly acting: Pick<ActingOnUsers, 'excessScopes'>;
  readonly catalogue: ScopeCatalogue;
  readonly roleAdministration: RoleAdministration;
}

const source = z
  .string()
  .describe(
    '`api`: made at run time, and can be changed so. `config` and `default`: the configuration decides. For who holds a role also the name of an authenticator.',
  );

const roleModel = z
  .object({
    kind: z.literal('role'),
    name: z.string(),
    description: z.string(),
    scopes: z.array(z.string()),
    source,
  })
  .meta({ id: 'Role' });

const holders = z.array(z.object({ name: z.string(), source }));

const holderModel = z
  .object({ kind: z.enum(['user', 'group', 'service']), name: z.string(), source })
  .meta({ id: 'RoleHolder' });

/** The first holders, which come with a role itself. */
const maxHolders = 200;

const grantedRoleModel = roleModel
  .extend({
    users: holders.describe(
      'To whom the role was given. Every user holds the role `user`, every administrator `admin`.',
    ),
    groups: holders,
    services: holders,
    holder_count: z
      .int()
      .describe(
        `How many users, groups and services it was given to. Of more than ${maxHolders}, the first are here: groups before services before users. \`GET /roles/{role}/holders\` lists all.`,
      ),
  })
  .meta({ id: 'RoleWithHolders' });

const description = z.string().max(roleLimits.description);
/** Scopes of a role, as they are sent. */
export const scopes = z.array(z.string().min(1).max(roleLimits.scope)).max(roleLimits.scopes);
const nameList = z.array(z.string().min(1).max(maxNameLength)).max(1000).default([]);
/** To whom a role is given. */
export const members = z.object({ users: nameList, groups: nameList, services: nameList });

/** What giving a role and taking it away have in common. */
const assignments = {
  path: '/roles/{role}/assignments',
  tag: 'roles',
  scopes: ['admin:roles'],
  needsRecentLogin: true,
  isVersioned: true,
  body: members,
  answers: { 200: { description: 'The role.', schema: grantedRoleModel } },
} as const;

/** Roles, and who holds them. */
export const roleOperations = [
  operation({
    id: 'listRoles',
    method: 'GET',
    path: '/roles',
    tag: 'roles',
    summary: 'List roles',
    scopes: ['read:roles'],
    isPaged: true,
    answers: { 200: { description: 'In the order of names.', schema: z.array(roleModel) } },
  }).handle(async ({ page: { offset, limit } }, { roles }: Deps) => {
    // There are few: those of the configuration, and as many as may be made at run time.
    const all = await roles.list();
    const items = all.slice(offset, offset + limit).map(present);
    return { status: 200, items, total: all.length };
  }),
  operation({
    id: 'getRole',
    method: 'GET',
    path: '/roles/{role}',
    tag: 'roles',
    summary: 'Read a role and who holds it',
    scopes: ['read:roles'],
    isVersioned: true,
    answers: { 200: { description: 'The role.', schema: grantedRoleModel } },
  }).handle(async ({ params }, deps: Deps) => {
    const role = await deps.roles.getByName(params.role);
    return { status: 200, body: await presentWhole(role, deps), version: versionOfRole(role) };
  }),
  operation({
    id: 'listRoleHolders',
    method: 'GET',
    path: '/roles/{role}/holders',
    tag: 'roles',
    summary: 'List who holds a role',
    scopes: ['read:roles'],
    isPaged: true,
    answers: {
      200: {
        description: 'To whom it was given: groups, services and users, in the order of names.',
        schema: z.array(holderModel),
      },
    },
  }).handle(async ({ params, page }, { roles }: Deps) => {
    const { name } = await roles.getByName(params.role);
    const { items, total } = await roles.listHolders(name, page);
    const holders = items.map(({ subjectKind: kind, subjectName, origin }) => ({
      kind,
      name: subjectName,
      source: origin,
    }));
    return { status: 200, items: holders, total };
  }),
  operation({
    id: 'createRole',
    method: 'POST',
    path: '/roles/{role}',
    audit: ['role.save'],
    tag: 'roles',
    summary: 'Create a role',
    description: 'The caller must hold every scope of it.',
    scopes: ['admin:roles'],
    needsRecentLogin: true,
    isVersioned: true,
    body: z.object({ description: description.default(''), scopes }),
    answers: { 201: { description: 'The new role.', schema: grantedRoleModel } },
  }).handle(async ({ params, body, caller }, deps: Deps) => {
    const role = await deps.roleAdministration.create(caller, { name: params.role, ...body });
    return { status: 201, body: await presentWhole(role, deps), version: versionOfRole(role) };
  }),
  operation({
    id: 'changeRole',
    method: 'PATCH',
    path: '/roles/{role}',
    audit: ['role.save'],
    tag: 'roles',
    summary: 'Change what a role allows',
    description:
      'Only of a role whose `source` is `api`. The caller must hold every scope that it had and that it gets. Holders lose what the role no longer allows at once, also in open connections.',
    scopes: ['admin:roles'],
    needsRecentLogin: true,
    isVersioned: true,
    body: z.object({ description: description.optional(), scopes: scopes.optional() }),
    answers: { 200: { description: 'The role.', schema: grantedRoleModel } },
  }).handle(async ({ params, body, caller, requireVersion }, deps: Deps) => {
    const before = await deps.roles.getByName(params.role);
    requireVersion(versionOfRole(before));
    const role = await deps.roleAdministration.change(caller, before, body);
    return { status: 200, body: await presentWhole(role, deps), version: versionOfRole(role) };
  }),
  operation({
    id: 'deleteRole',
    method: 'DELETE',
    path: '/roles/{role}',
    audit: ['role.delete'],
    tag: 'roles',
    summary: 'Delete a role',
    description:
      'Only one whose `source` is `api`. The caller must hold every scope of it. No one holds it any more.',
    scopes: ['admin:roles'],
    needsRecentLogin: true,
    isVersioned: true,
    answers: { 204: { description: 'The role is gone.' } },
  }).handle(async ({ params, caller, requireVersion }, deps: Deps) => {
    const role = await deps.roles.getByName(params.role);
    requireVersion(versionOfRole(role));
    await deps.roleAdministration.delete(caller, role);
  }),
  operation({
    ...assignments,
    id: 'assignRole',
    method: 'POST',
    audit: ['role.assign'],
    summary: 'Give a role to users, groups and services',
    description:
      'All or none of them. The caller must hold every scope of the role. Whom the configuration lists for a role, it decides alone; the other kinds of holders can be given it here.',
  }).handle(changeHolders(({ assign }) => assign)),
  operation({
    ...assignments,
    id: 'takeRoleAway',
    method: 'DELETE',
    audit: ['role.unassign'],
    summary: 'Take a role from users, groups and services',
    description:
      'The caller must hold every scope of the role. Who does not hold it, or by the configuration or a provider, is passed over.',
  }).handle(changeHolders(({ takeAway }) => takeAway)),
  view({ id: 'viewRoles', path: '/admin/roles', scopes: ['read:roles'] }).handle(
    async (_request, { roles }: Deps) => {
      const holderCounts = await roles.countHolders();
      return (await roles.list()).map((role) => ({
        ...role,
        holderCount: holderCounts.get(role.name) ?? 0,
      }));
    },
  ),
  view({
    id: 'viewRole',
    path: '/admin/roles/{role}',
    scopes: ['read:roles'],
    query: listQuery,
  }).handle(async ({ params, query }, { roles, roleAdministration, catalogue }: Deps) => {
    const role = await roles.getByName(params.role);
    const found = await roles.listHolders(role.name, listOptionsOf(query));
    return {
      role,
      query,
      found: {
        ...found,
        items: found.items.map((each) => ({ ...each, isOfRuntime: each.origin === runtimeOrigin })),
      },
      allows: describeScopes(role.scopes, catalogue),
      changeableKinds: kinds.filter(
        (kind) => roleAdministration.fixedMembers(role, kind) === undefined,
      ),
      /** Why it can be given to some kinds of holders alone. */
      fixedReasons: [
        ...new Map(
          kinds.flatMap((kind) => {
            const reason = roleAdministration.fixedMembers(role, kind);
            return reason === undefined ? [] : [[String(reason), reason] as const];
          }),
        ).values(),
      ],
      isChangeable: roleAdministration.isChangeable(role),
    };
  }),
  view({ id: 'viewNewRole', path: '/admin/new-role', scopes: ['admin:roles'] }).handle(
    async ({ caller }, deps: Deps) => ({ choices: await choicesFor(caller, deps) }),
  ),
  view({ id: 'viewRoleForm', path: '/admin/roles/{role}/edit', scopes: ['admin:roles'] }).handle(
    async ({ params, caller }, deps: Deps) => {
      const role = await deps.roles.getByName(params.role);
      return { role, version: versionOfRole(role), choices: await choicesFor(caller, deps) };
    },
  ),
];

const kinds = ['user', 'group', 'service'] as const;
/** They stand for no right that could be given. */
const notOffered = new Set(['(no_scope)', 'inherit']);

/** The scopes that a role may have, and whether the caller may give them. */
export async function choicesFor(
  caller: Caller,
  { acting, catalogue }: Pick<Deps, 'acting' | 'catalogue'>,
) {
  const plain = catalogue.names.filter(
    (name) => !notOffered.has(name) && !isForServicesOnly(name, catalogue),
  );
  const excess = new Set(await acting.excessScopes(caller, plain));
  return plain.map((scope) => ({
    scope,
    description: catalogue.get(scope)?.description ?? scope,
    isHeld: !excess.has(scope),
  }));
}

function changeHolders(changeOf: (of: RoleAdministration) => RoleAdministration['assign']) {
  return async (
    {
      params,
      body,
      caller,
      requireVersion,
    }: Pick<
      OperationRequest<OperationDeclaration & typeof assignments>,
      'params' | 'body' | 'caller' | 'requireVersion'
    >,
    { roles, roleAdministration }: Deps,
  ) => {
    const role = await roles.getByName(params.role);
    requireVersion(versionOfRole(role));
    await changeOf(roleAdministration)(caller, role, membersOf(body));
    return {
      status: 200,
      body: await presentWhole(role, { roles }),
      version: versionOfRole(role),
    } as const;
  };
}

/** By kind, as roles are given. */
export function membersOf({ users, groups, services }: z.output<typeof members>): RoleMembers {
  return { user: users.map((name) => name.normalize('NFC')), group: groups, service: services };
}

function present({ name, description, scopes, origin }: Role): ModelOf<typeof roleModel> {
  return { kind: 'role', name, description, scopes, source: origin };
}

async function presentWhole(
  role: Role,
  { roles }: Pick<Deps, 'roles'>,
): Promise<ModelOf<typeof grantedRoleModel>> {
  const { items, total } = await roles.listHolders(role.name, { limit: maxHolders });
  return {
    ...present(role),
    users: holdersOf('user', items),
    groups: holdersOf('group', items),
    services: holdersOf('service', items),
    holder_count: total,
  };
}

function holdersOf(kind: RoleSubjectKind, assignments: readonly RoleAssignment[]) {
  return assignments
    .filter(({ subjectKind }) => subjectKind === kind)
    .map(({ subjectName, origin }) => ({ name: subjectName, source: origin }));
}
