import type { Caller } from '../../../identity/rbac/caller.ts';
import type { Membership } from '../../../identity/rbac/membership.ts';
import { type OperationId, operationOf } from '../../../operations/operations.ts';
import { isAuthorised } from '../../../operations/perform.ts';
import type { AdminTab } from '../elements/layout-props.ts';

/** What the first page of each part shows. */
const viewByTab = {
  overview: 'viewOverview',
  users: 'viewUsers',
  groups: 'viewGroups',
  roles: 'viewRoles',
  servers: 'viewServers',
  services: 'viewServices',
  instances: 'viewInstances',
  lockouts: 'viewLockouts',
  announcements: 'viewNotices',
  activity: 'viewActivity',
} as const satisfies Record<AdminTab, OperationId>;

/** The parts of the administration that a caller may see something of, in their order. */
export function adminTabsOf(caller: Caller, membership: Membership): AdminTab[] {
  return (Object.keys(viewByTab) as AdminTab[]).filter((tab) =>
    isAuthorised(operationOf(viewByTab[tab]), {}, caller, membership),
  );
}
