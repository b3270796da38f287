import type Router from '@koa/router';
import { accountRoutes } from '../entrances/pages/account/account-routes.ts';
import { passkeyRoutes } from '../entrances/pages/account/passkey-routes.ts';
import { secondFactorRoutes } from '../entrances/pages/account/second-factor-routes.ts';
import { usagePageRoutes } from '../entrances/pages/account/usage-routes.ts';
import { adminAccessRoutes } from '../entrances/pages/admin/access-routes.ts';
import { adminActivityRoutes } from '../entrances/pages/admin/activity-routes.ts';
import { adminAnnouncementRoutes } from '../entrances/pages/admin/announcement-routes.ts';
import { adminBudgetRoutes } from '../entrances/pages/admin/budget-routes.ts';
import { adminGroupRoutes } from '../entrances/pages/admin/group-routes.ts';
import { adminInstanceRoutes } from '../entrances/pages/admin/instance-routes.ts';
import { adminKeyRoutes } from '../entrances/pages/admin/key-routes.ts';
import { adminLockoutRoutes } from '../entrances/pages/admin/lockout-routes.ts';
import { adminOverviewRoutes } from '../entrances/pages/admin/overview-page.ts';
import { adminRoleRoutes } from '../entrances/pages/admin/role-routes.ts';
import { adminRuntimeServiceRoutes } from '../entrances/pages/admin/runtime-service-routes.ts';
import { adminServerListRoutes } from '../entrances/pages/admin/server-list-routes.ts';
import { adminServiceRoutes } from '../entrances/pages/admin/service-routes.ts';
import { adminUsageRoutes } from '../entrances/pages/admin/usage-routes.ts';
import { adminUserActRoutes } from '../entrances/pages/admin/user-act-routes.ts';
import { adminUserImportRoutes } from '../entrances/pages/admin/user-import-routes.ts';
import { adminUserListRoutes } from '../entrances/pages/admin/user-list-routes.ts';
import { adminUserRoutes } from '../entrances/pages/admin/user-routes.ts';
import { errorRoutes } from '../entrances/pages/errors/error-routes.ts';
import type { BoundPages } from '../entrances/pages/forms/binding.ts';
import { createBoundPages } from '../entrances/pages/forms/bound-pages.ts';
import { confirmLoginRoutes } from '../entrances/pages/login/confirm-login-routes.ts';
import { deviceRoutes } from '../entrances/pages/login/device-routes.ts';
import { externalLoginRoutes } from '../entrances/pages/login/external-login-routes.ts';
import { invitationRoutes } from '../entrances/pages/login/invitation-routes.ts';
import { loginRoutes } from '../entrances/pages/login/login-routes.ts';
import { loginStepRoutes } from '../entrances/pages/login/login-step-routes.ts';
import { passkeyQuestionRoute } from '../entrances/pages/login/passkey-question-route.ts';
import { setUpRoutes } from '../entrances/pages/login/set-up-routes.ts';
import { setUpSecondFactorRoutes } from '../entrances/pages/login/set-up-second-factor-routes.ts';
import { preferenceRoutes } from '../entrances/pages/preference-routes.ts';
import { searchRoutes } from '../entrances/pages/search/search-routes.ts';
import { homeRoutes } from '../entrances/pages/servers/home-routes.ts';
import { jupyterHubRoutes } from '../entrances/pages/servers/jupyterhub-routes.ts';
import { openServerRoutes } from '../entrances/pages/servers/open-server-routes.ts';
import { serverPageRoutes } from '../entrances/pages/servers/server-page-routes.ts';
import { spawnRoutes } from '../entrances/pages/servers/spawn-routes.ts';
import { stoppedServerRoutes, userUrlRoutes } from '../entrances/pages/servers/user-url-routes.ts';
import { servicesRoutes } from '../entrances/pages/services/services-routes.ts';
import { acceptShareRoutes } from '../entrances/pages/sharing/accept-share-routes.ts';
import { shareRoutes } from '../entrances/pages/sharing/share-routes.ts';
import { createShownOnce } from '../entrances/pages/shown-once.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createRedirectLoopGuard } from '../platform/http/redirect-loop-guard.ts';
import { loginLoopCookie } from '../platform/protocol/cookie-names.ts';
import type { Whole } from './operations.ts';

/** Adds every page below `/hub/`. */
export function addPages(router: Router, hub: Whole): void {
  const { secrets } = hub;
  const shownOnce = createSealer(secrets, 'shown-once');
  const bound = createBoundPages(router, hub);
  errorRoutes(router, hub);
  addLoginPages(router, hub);
  addServerPages(router, bound, hub);
  shareRoutes(bound, createShownOnce(shownOnce, 'share-link'));
  acceptShareRoutes(router, bound);
  deviceRoutes(bound);
  accountRoutes(bound, {
    catalogue: hub.catalogue,
    maxLifetimeSeconds: hub.config.Hub.token_expires_in_max_seconds,
    newTokens: createShownOnce(shownOnce, 'token'),
  });
  secondFactorRoutes(bound);
  passkeyRoutes(bound);
  usagePageRoutes(bound);
  const admin = createBoundPages(router, { ...hub, areaScope: 'admin-ui' });
  adminOverviewRoutes(admin);
  adminServerListRoutes(admin);
  adminUsageRoutes(admin);
  adminBudgetRoutes(admin);
  adminUserActRoutes(admin, hub);
  adminUserListRoutes(admin);
  adminUserImportRoutes(admin, hub);
  adminUserRoutes(admin, { newLinks: createShownOnce(shownOnce, 'link') });
  adminGroupRoutes(admin);
  adminRoleRoutes(admin);
  adminAccessRoutes(admin);
  adminInstanceRoutes(admin);
  adminRuntimeServiceRoutes(admin);
  adminServiceRoutes(admin);
  adminLockoutRoutes(admin);
  adminKeyRoutes(admin);
  adminAnnouncementRoutes(admin);
  adminActivityRoutes(admin);
}

/** Every way to a login, and to the password for one. */
function addLoginPages(router: Router, hub: Whole): void {
  const { config, logins, secrets, servers } = hub;
  loginRoutes(router, {
    ...hub,
    idTokenOf: (session) => logins.idTokenOf(session),
    isAutoLogin: config.Authenticator.auto_login,
    afterLogout: async (userName) => {
      if (config.Hub.shutdown_on_logout) await servers.stopAllOf(userName);
    },
    loopGuard: createRedirectLoopGuard(createSealer(secrets, 'login-round'), loginLoopCookie),
  });
  loginStepRoutes(router, hub);
  setUpSecondFactorRoutes(router, hub);
  passkeyQuestionRoute(router, hub);
  externalLoginRoutes(router, hub);
  confirmLoginRoutes(router, hub);
  invitationRoutes(router, hub);
  setUpRoutes(router, hub);
}

/** The home page, and the pages on which servers are started, followed and stopped. */
function addServerPages(router: Router, bound: BoundPages, hub: Whole): void {
  const shared = {
    ...hub,
    implicitSpawnSeconds: hub.config.Hub.implicit_spawn_seconds,
  };
  servicesRoutes(bound);
  homeRoutes(bound, hub);
  searchRoutes(bound, hub);
  spawnRoutes(bound, shared);
  serverPageRoutes(bound, hub);
  stoppedServerRoutes(bound, shared);
  openServerRoutes(router, hub);
  preferenceRoutes(router, hub);
  if (hub.jupyterHub.hasAddresses) jupyterHubRoutes(router, hub);
}

/** The pages outside `/hub/`: the base URL, and the addresses of servers that do not run. */
export function addOuterPages(router: Router, hub: Whole): void {
  const { basePath, landing, urls } = hub;
  router.get([basePath, urls.hub, urls.hub.slice(0, -1)], landing.middleware);
  userUrlRoutes(router, hub);
}
