import type Router from '@koa/router';
import { type BatchReport, createBatches } from '../accounts/batches.ts';
import { createSealer } from '../crypto/sealer.ts';
import type { OperationDeps } from '../operations/operations.ts';
import type { Perform } from '../operations/perform.ts';
import { adminActivityRoutes } from '../pages/admin/activity-routes.ts';
import { createAdminContext } from '../pages/admin/admin-context.ts';
import { adminAnnouncementRoutes } from '../pages/admin/announcement-routes.ts';
import { adminGroupRoutes } from '../pages/admin/group-routes.ts';
import { adminInstanceRoutes } from '../pages/admin/instance-routes.ts';
import { adminLockoutRoutes } from '../pages/admin/lockout-routes.ts';
import { adminRoleRoutes } from '../pages/admin/role-routes.ts';
import { adminRuntimeServiceRoutes } from '../pages/admin/runtime-service-routes.ts';
import { adminServiceRoutes } from '../pages/admin/service-routes.ts';
import { adminUserActRoutes } from '../pages/admin/user-act-routes.ts';
import { adminUserListRoutes } from '../pages/admin/user-list-routes.ts';
import { adminUserRoutes } from '../pages/admin/user-routes.ts';
import { createBoundPages, type Entrance } from '../pages/forms/bound-pages.ts';
import { createShownOnce } from '../pages/shown-once.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { ComposedInstances } from './compose-instances.ts';
import type { ComposedLoads } from './compose-loads.ts';
import type { ComposedServers } from './compose-servers.ts';
import type { ComposedServices } from './compose-services.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

export function addAdminPages(
  router: Router,
  { stores, keyv, database, disposables, log, secrets }: Foundation,
  deps: {
    readonly perform: Perform<OperationDeps>;
    readonly entrances: Entrance[];
    readonly site: Pick<Site, 'apiPath'>;
    readonly browser: Pick<ComposedBrowser, 'pages' | 'confirmLogin'>;
    readonly authorizer: Authorizer;
    readonly logins: LoginSessions;
    readonly accounts: ComposedAccounts;
    readonly servers: ComposedServers;
    readonly services: ComposedServices;
    readonly instances: ComposedInstances;
    readonly loads: Pick<ComposedLoads, 'reader'>;
  },
): void {
  const { logins, authorizer } = deps;
  const { accounts, acting, invitations, groupMembers } = deps.accounts;
  const { users, groups } = stores;
  const admin = createAdminContext(router, {
    pages: deps.browser.pages,
    authorizer,
    logins,
    readForm: deps.browser.confirmLogin.readForm,
    auditLog: stores.audit,
  });
  const bound = createBoundPages(router, {
    ...deps.browser,
    perform: deps.perform,
    authorizer,
    areaScope: 'admin-ui',
    entrances: deps.entrances,
  });
  const shared = { users, accounts, invitations, invitationStore: stores.invitations };
  const loads = deps.loads.reader;
  const serverDeps = { serverStore: stores.servers, servers: deps.servers.servers, loads };
  const batches = disposables.use(
    createBatches({ reports: keyv.space<BatchReport>('batches'), now: database.now, log }),
  );
  const acts = adminUserActRoutes(admin, {
    ...shared,
    ...serverDeps,
    acting,
    members: groupMembers,
    batches,
    groups,
  });
  adminUserListRoutes(admin, {
    ...shared,
    ...serverDeps,
    groups,
    userInfo: stores.userInfo,
    actsOf: acts.offered,
  });
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
