import type Router from '@koa/router';
import { adminActivityRoutes } from '../entrances/pages/admin/activity-routes.ts';
import { adminAnnouncementRoutes } from '../entrances/pages/admin/announcement-routes.ts';
import { adminGroupRoutes } from '../entrances/pages/admin/group-routes.ts';
import { adminInstanceRoutes } from '../entrances/pages/admin/instance-routes.ts';
import { adminLockoutRoutes } from '../entrances/pages/admin/lockout-routes.ts';
import { adminRoleRoutes } from '../entrances/pages/admin/role-routes.ts';
import { adminRuntimeServiceRoutes } from '../entrances/pages/admin/runtime-service-routes.ts';
import { adminServiceRoutes } from '../entrances/pages/admin/service-routes.ts';
import { adminUserActRoutes } from '../entrances/pages/admin/user-act-routes.ts';
import { adminUserListRoutes } from '../entrances/pages/admin/user-list-routes.ts';
import { adminUserRoutes } from '../entrances/pages/admin/user-routes.ts';
import type { Entrance } from '../entrances/pages/forms/binding.ts';
import { createBoundPages } from '../entrances/pages/forms/bound-pages.ts';
import { createShownOnce } from '../entrances/pages/shown-once.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { OperationDeps } from '../operations/operations.ts';
import type { Perform } from '../operations/perform.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { Foundation } from './foundation.ts';

export function addAdminPages(
  router: Router,
  { secrets }: Pick<Foundation, 'secrets'>,
  deps: {
    readonly perform: Perform<OperationDeps>;
    readonly entrances: Entrance[];
    readonly browser: Pick<ComposedBrowser, 'pages' | 'confirmLogin'>;
    readonly authorizer: Authorizer;
    readonly logins: Pick<LoginSessions, 'find'>;
    readonly accounts: Pick<ComposedAccounts, 'batches'>;
  },
): void {
  const bound = createBoundPages(router, {
    ...deps.browser,
    perform: deps.perform,
    authorizer: deps.authorizer,
    areaScope: 'admin-ui',
    entrances: deps.entrances,
  });
  adminUserActRoutes(bound, { batches: deps.accounts.batches, logins: deps.logins });
  adminUserListRoutes(bound);
  adminUserRoutes(bound, {
    newLinks: createShownOnce(createSealer(secrets, 'shown-once'), 'link'),
  });
  adminGroupRoutes(bound);
  adminRoleRoutes(bound);
  adminInstanceRoutes(bound);
  adminRuntimeServiceRoutes(bound);
  adminServiceRoutes(bound);
  adminLockoutRoutes(bound);
  adminAnnouncementRoutes(bound);
  adminActivityRoutes(bound);
}
