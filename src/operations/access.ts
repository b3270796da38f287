import { z } from 'zod';
import { type GiveAccessDeps, giveAccess } from '../identity/accounts/give-access.ts';
import { accessKinds, placeKinds, type Role, type RoleAssignment } from '../identity/rbac/role.ts';
import { runtimeOrigin } from '../identity/rbac/role-change-store.ts';
import type { RoleStore } from '../identity/rbac/role-store.ts';
import { expandForAnyHolder, readScope, type ScopeFilter } from '../identity/rbac/scope.ts';
import type { ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import type { GroupPages } from '../identity/users/group-pages-store.ts';
import type { Service } from '../workloads/services/service.ts';
import type { ServiceRegistry } from '../workloads/services/service-registry.ts';
import { operation, view } from './operation.ts';
import { choicesFor, members, membersOf, type Deps as RoleDeps, scopes } from './roles.ts';

export interface Deps extends Omit<GiveAccessDeps, 'hasService'>, Pick<RoleDeps, 'acting'> {
  readonly groupPages: Pick<GroupPages, 'listGroups'>;
  readonly registry: Pick<ServiceRegistry, 'find' | 'services'>;
}

const name = z.string().max(600).default('');

/** Names that a field offers; one types the others. */
const maxOffered = 200;

/** Giving access by choices in place of scopes. */
export const accessOperations = [
  view({
    id: 'viewGiveAccess',
    path: '/admin/give-access',
    scopes: ['admin:roles'],
    query: z.object({ user: name, group: name, service: name }),
  }).handle(async ({ query, caller, may }, deps: Deps) => {
    const groups = may('list:groups')
      ? await deps.groupPages.listGroups({ limit: maxOffered })
      : undefined;
    const services = may('list:services') ? [...deps.registry.services()] : [];
    return {
      query,
      scopes: (await choicesFor(caller, deps)).filter(({ isHeld }) => isHeld),
      places: [
        ...(groups?.items ?? []).map(({ name }) => ({ type: 'group', name })),
        ...services.slice(0, maxOffered).map(({ name }) => ({ type: 'service', name })),
      ],
    };
  }),
  operation({
    id: 'giveAccess',
    audience: 'page',
    method: 'POST',
    path: '/admin/give-access',
    audit: ['role.assign', 'role.save'],
    tag: 'roles',
    summary: 'Give users, groups and services a bundle of rights, or chosen ones',
    scopes: ['admin:roles'],
    needsRecentLogin: true,
    body: members.extend({
      kind: z.enum(accessKinds),
      scopes,
      place: z.object({ kind: z.enum(placeKinds), name }),
    }),
    answers: {
      200: { description: 'The role that gives it.', schema: z.object({ role: z.string() }) },
    },
  }).handle(async ({ body, caller }, deps: Deps) => {
    const hasService = (wanted: string) => deps.registry.find(wanted) !== undefined;
    const { name: role } = await giveAccess(caller, body, membersOf(body), { ...deps, hasService });
    return { status: 200, body: { role } };
  }),
];

/** Who holds what over one group or service. */
export interface AccessEntry extends RoleAssignment {
  readonly role: Role;
  readonly isOfRuntime: boolean;
}

/** Holders of one role that are listed; its own page has all. */
const maxHolders = 20;

/** Those to whom roles were given that say the name of a group or service; not who may do as much everywhere. */
export async function accessOver(
  { kind, value }: ScopeFilter,
  roles: Pick<RoleStore, 'list' | 'firstHolders'>,
): Promise<{ readonly entries: readonly AccessEntry[]; readonly isWhole: boolean }> {
  const over = (await roles.list()).filter((role) =>
    role.scopes.some((written) => {
      const filter = readScope(written).scope?.filter;
      return filter?.kind === kind && filter.value === value;
    }),
  );
  const names = over.map(({ name }) => name);
  const found = Map.groupBy(
    await roles.firstHolders(names, maxHolders + 1),
    ({ roleName }) => roleName,
  );
  const holdersOf = ({ name }: Role) => found.get(name) ?? [];
  return {
    entries: over.flatMap((role) =>
      holdersOf(role)
        .slice(0, maxHolders)
        .map((each) => ({ ...each, role, isOfRuntime: each.origin === runtimeOrigin })),
    ),
    isWhole: over.every((role) => holdersOf(role).length <= maxHolders),
  };
}

/** Names of the roles whose holders may open a service. */
export async function rolesThatOpen(
  { accessScopes }: Pick<Service, 'accessScopes'>,
  {
    roles,
    catalogue,
  }: {
    readonly roles: Pick<RoleStore, 'list'>;
    readonly catalogue: ScopeCatalogue;
  },
): Promise<readonly string[]> {
  const all = await roles.list();
  return all
    .filter(({ scopes }) => {
      const expanded = expandForAnyHolder(scopes, catalogue);
      return accessScopes.some((scope) => expanded.has(scope));
    })
    .map(({ name }) => name);
}
