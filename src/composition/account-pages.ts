import type Router from '@koa/router';
import { accountRoutes } from '../pages/account/account-routes.ts';
import { createAdminContext } from '../pages/admin/admin-context.ts';
import { adminGroupRoutes } from '../pages/admin/group-routes.ts';
import { adminLockoutRoutes } from '../pages/admin/lockout-routes.ts';
import { adminServiceRoutes } from '../pages/admin/service-routes.ts';
import { adminUserListRoutes } from '../pages/admin/user-list-routes.ts';
import { adminUserRoutes } from '../pages/admin/user-routes.ts';
import { invitationRoutes } from '../pages/login/invitation-routes.ts';
import type { LogIn } from '../pages/login/log-in.ts';
import { secondFactorRoutes } from '../pages/login/second-factor-routes.ts';
import type { HubParts } from './hub-parts.ts';

/** Adds the pages of the person's own account, and those that links lead to. */
export function addAccountPages(router: Router, deps: HubParts, logIn: LogIn): void {
  const { pages, stores, login, account } = deps;
  const { credentials, groups } = stores;
  const { secondFactors, passwords } = account;
  accountRoutes(router, {
    pages,
    groups,
    credentials,
    passwords,
    passwordHasher: login.passwordHasher,
    throttle: login.throttle,
    secondFactors,
    identityLinks: account.identityLinks,
    authenticators: login.authenticators,
  });
  secondFactorRoutes(router, { pages, secondFactors, credentials });
  invitationRoutes(router, {
    pages,
    invitations: account.invitations,
    loginService: login.loginService,
    authenticators: login.authenticators,
    passwords,
    logIn,
  });
}

/** Adds the administration. */
export function addAdminPages(router: Router, deps: HubParts): void {
  const { pages, stores, login, account, authority, accounts, log } = deps;
  const admin = createAdminContext(router, { pages, authority });
  const shared = {
    users: stores.users,
    accounts,
    invitations: account.invitations,
    invitationStore: stores.invitations,
  };
  adminUserListRoutes(admin, { ...shared, servers: stores.servers });
  adminUserRoutes(admin, {
    ...shared,
    groups: stores.groups,
    roles: stores.roles,
    identities: stores.identities,
    authenticators: login.authenticators,
    credentials: stores.credentials,
    secondFactors: account.secondFactors,
    logins: deps.logins,
    serverStore: stores.servers,
    servers: deps.server.servers,
    log,
  });
  adminGroupRoutes(admin, { groups: stores.groups, members: account.groupMembers });
  adminServiceRoutes(admin, { registry: () => deps.registry, log });
  adminLockoutRoutes(admin, { lockouts: account.lockouts, log });
}
