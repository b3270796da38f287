import type Router from '@koa/router';
import type { Config } from '../config/config.ts';
import { accountRoutes } from '../pages/account/account-routes.ts';
import { createAdminContext } from '../pages/admin/admin-context.ts';
import { adminGroupRoutes } from '../pages/admin/group-routes.ts';
import { adminLockoutRoutes } from '../pages/admin/lockout-routes.ts';
import { adminServiceRoutes } from '../pages/admin/service-routes.ts';
import { adminUserListRoutes } from '../pages/admin/user-list-routes.ts';
import { adminUserRoutes } from '../pages/admin/user-routes.ts';
import { invitationRoutes } from '../pages/login/invitation-routes.ts';
import { beginSession } from '../pages/login/login-routes.ts';
import { createLoginSteps, type LoginSteps } from '../pages/login/login-steps.ts';
import { secondFactorRoutes } from '../pages/login/second-factor-routes.ts';
import type { HubParts } from './hub-parts.ts';

/** Creates what a login by password goes through after the password. */
export function createSteps(deps: HubParts, config: Config): LoginSteps {
  const { pages, stores, login, account, sessions, metrics } = deps;
  return createLoginSteps({
    pages,
    secondFactors: account.secondFactors,
    partialLogins: account.partialLogins,
    sealer: account.partialLoginSealer,
    passwords: account.passwords,
    passwordHasher: login.passwordHasher,
    credentials: stores.credentials,
    users: stores.users,
    passwordAuthenticator: account.passwordAuthenticator,
    minimumPasswordLength: account.minimumPasswordLength,
    beginSession: (ctx, result) => beginSession(ctx, result, sessions),
    metrics,
    defaultUrl: config.Hub.default_url ?? pages.urls.home,
    isSecure: config.publicUrl.protocol === 'https:',
  });
}

/** Adds the pages of the person's own account, and those that links lead to. */
export function addAccountPages(
  router: Router,
  deps: HubParts,
  steps: LoginSteps,
  config: Config,
): void {
  const { pages, stores, login, account } = deps;
  const { credentials, groups } = stores;
  const { secondFactors, minimumPasswordLength, passwordAuthenticator } = account;
  accountRoutes(router, {
    pages,
    groups,
    credentials,
    passwords: account.passwords,
    passwordHasher: login.passwordHasher,
    throttle: login.throttle,
    secondFactors,
    identityLinks: account.identityLinks,
    authenticators: login.authenticators,
    minimumPasswordLength,
  });
  secondFactorRoutes(router, { pages, secondFactors, credentials });
  invitationRoutes(router, {
    pages,
    invitations: account.invitations,
    loginService: login.loginService,
    passwordAuthenticator,
    minimumPasswordLength,
    async completeLogin(ctx, result) {
      if (await steps.continueLogin(ctx, result, undefined)) return;
      await beginSession(ctx, result, deps.sessions);
      deps.metrics.countLogin(result.authenticator, 'logged_in');
      ctx.redirect(config.Hub.default_url ?? pages.urls.home);
      ctx.status = 303;
    },
  });
}

/** Adds the administration. */
export function addAdminPages(router: Router, deps: HubParts, config: Config): void {
  const { pages, stores, login, account, authority, accounts, log } = deps;
  const admin = createAdminContext(router, { pages, authority });
  const shared = {
    users: stores.users,
    accounts,
    invitations: account.invitations,
    invitationStore: stores.invitations,
    invitationUrl: (secret: string) => invitationUrl(deps, config, secret),
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

/** The whole link with which somebody chooses a password. */
export function invitationUrl(deps: HubParts, config: Config, secret: string): string {
  return `${config.publicUrl.origin}${deps.pages.urls.invitation}?secret=${secret}`;
}
