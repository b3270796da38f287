import type { Caller } from '../../identity/rbac/access-check.ts';

/** Who sees to the servers of all users may try whether they start, while others wait. */
export function mayStartInMaintenance({ scopes }: Pick<Caller, 'scopes'>): boolean {
  return scopes.has('admin:servers');
}
