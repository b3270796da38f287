import {
  type ListFilter,
  listFilter,
  mayAccess,
  mayAccessServerOf,
  type Resource,
} from '../identity/rbac/access-check.ts';
import { type Caller, presentsToken } from '../identity/rbac/caller.ts';
import type { Membership } from '../identity/rbac/membership.ts';
import { requireAccess } from '../identity/rbac/require-access.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { type OperationDeclaration, resourceOf, type Target } from './operation.ts';

/** Which filters of a scope pick rows of a list. */
const filtersOf: Readonly<Partial<Record<Target, readonly (keyof ListFilter)[]>>> = {
  users: ['users', 'groups'],
  groups: ['groups'],
  services: ['services'],
};

/**
 * Requires what an operation needs, and tells which rows of a list are shown. Throws `forbidden`, or
 * `not_found` where a scope is held but not for the resource in the path.
 */
export function authorise(
  operation: OperationDeclaration,
  params: Readonly<Record<string, string>>,
  caller: Caller | undefined,
  membership: Membership,
): 'all' | ListFilter {
  const { scopes, target = 'hub' } = operation;
  if (scopes === 'public') return 'all';
  if (caller === undefined) throw missingCredentials();
  if (scopes === 'authenticated') return 'all';
  if (isForOneself(operation, params, caller)) return 'all';
  const filters = filtersOf[target];
  if (filters === undefined) {
    const resource = resourceOf(operation, params);
    const may = createMay(caller, membership);
    if (isForServerOf(resource, operation, caller)) return 'all';
    if (operation.outsideFilter === 'forbidden' && resource !== undefined) {
      if (!scopes.some((scope) => may(scope, resource))) throw outsideFilter();
    } else requireAccess(caller.scopes, scopes, membership, resource);
    return 'all';
  }
  for (const scope of scopes) {
    const rows = listFilter(caller.scopes, scope);
    if (rows === 'all') return 'all';
    if (rows !== undefined && filters.some((filter) => rows[filter].size > 0)) return rows;
  }
  requireAccess(caller.scopes, scopes, membership);
  return 'all';
}

function isForOneself(
  { alwaysForOneself }: OperationDeclaration,
  { name }: Readonly<Record<string, string>>,
  caller: Caller,
): boolean {
  return alwaysForOneself === true && !presentsToken(caller) && caller.user?.name === name;
}

function isForServerOf(
  resource: Resource | undefined,
  { orForServer }: OperationDeclaration,
  { scopes }: Caller,
): boolean {
  if (orForServer === undefined || resource?.kind !== 'user') return false;
  return mayAccessServerOf(scopes, orForServer, resource.name);
}

/** Whether an operation that was authorised is so still. */
export function isAuthorised(...request: Parameters<typeof authorise>): boolean {
  try {
    authorise(...request);
    return true;
  } catch (error) {
    if (error instanceof HubError) return false;
    throw error;
  }
}

/** Whether a caller may perform an operation for more than their own account, which every user may do something with. */
export function reachesOthers({ scopes }: OperationDeclaration, caller: Caller): boolean {
  if (typeof scopes === 'string') return true;
  return scopes.some((scope) => {
    const filter = listFilter(caller.scopes, scope);
    if (filter === undefined || filter === 'all') return filter === 'all';
    return filter.groups.size > 0 || [...filter.users].some((name) => name !== caller.owner.name);
  });
}

/** Whether a caller holds a scope for a resource. */
export function createMay(caller: Caller | undefined, membership: Membership) {
  return (scope: string, resource?: Resource): boolean =>
    caller !== undefined && mayAccess(caller.scopes, scope, resource, membership);
}

/** The refusal where a resource that is not there is no other than one that is not the caller's. */
export function outsideFilter(): HubError {
  return new HubError('forbidden', text`You may not do this, or there is no such resource.`);
}

/** The refusal of a request without a known caller. */
export function missingCredentials(): HubError {
  return new HubError('forbidden', text`Missing or invalid credentials.`, {
    hint: text`Send a valid token as "Authorization: token <API token>".`,
  });
}
