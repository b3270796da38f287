import { listFilter } from '../../rbac/access-check.ts';
import type { ScopeSet } from '../../rbac/scope.ts';
import type { AdminTab } from '../elements/layout-props.ts';

/** What must be held, for some users, groups or services at least, to see each part of the administration. */
const scopeByTab = {
  users: 'list:users',
  groups: 'list:groups',
  roles: 'read:roles',
  services: 'list:services',
  instances: 'read:hub',
  lockouts: 'admin:users',
  announcements: 'admin:announcements',
  activity: 'read:audit',
} as const satisfies Record<AdminTab, string>;

/** Parts that have no list to cut down: a scope with a filter does not open them. */
const wholeTabs: ReadonlySet<AdminTab> = new Set([
  'roles',
  'instances',
  'lockouts',
  'announcements',
  'activity',
]);

/** The parts of the administration that scopes open, in their order. */
export function adminTabsOf(scopes: ScopeSet): AdminTab[] {
  return (Object.keys(scopeByTab) as AdminTab[]).filter((tab) =>
    wholeTabs.has(tab)
      ? scopes.has(scopeByTab[tab])
      : listFilter(scopes, scopeByTab[tab]) !== undefined,
  );
}
