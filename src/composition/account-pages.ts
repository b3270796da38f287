import type Router from '@koa/router';
import { createSealer } from '../crypto/sealer.ts';
import { accountRoutes } from '../pages/account/account-routes.ts';
import { passkeyRoutes } from '../pages/account/passkey-routes.ts';
import { secondFactorRoutes } from '../pages/account/second-factor-routes.ts';
import { sessionPageRoutes } from '../pages/account/session-routes.ts';
import { tokenPageRoutes } from '../pages/account/token-routes.ts';
import { createShownOnce } from '../pages/shown-once.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { ComposedOAuth } from './compose-oauth.ts';
import type { Foundation } from './foundation.ts';

/** What users do with their own account. */
export function addAccountPages(
  router: Router,
  { config, secrets, stores }: Foundation,
  deps: {
    readonly browser: Pick<ComposedBrowser, 'pages' | 'confirmLogin'>;
    readonly login: ComposedLogin;
    readonly logins: LoginSessions;
    readonly accounts: ComposedAccounts;
    readonly oauth: ComposedOAuth;
    readonly authorizer: Authorizer;
    readonly serviceNames: () => readonly string[];
  },
): void {
  const { login, logins, accounts, oauth } = deps;
  const { pages, confirmLogin } = deps.browser;
  const { credentials, groups } = stores;
  const { secondFactors, passkeys, passwords, identityLinks } = accounts;
  accountRoutes(router, {
    pages,
    confirmLogin,
    groups,
    credentials,
    passwords,
    passwordHasher: login.passwordHasher,
    throttle: login.throttle,
    secondFactors,
    passkeys,
    identityLinks,
    userProfiles: accounts.userProfiles,
    authenticators: login.authenticators,
    auditLog: stores.audit,
  });
  secondFactorRoutes(router, { pages, confirmLogin, secondFactors, credentials });
  passkeyRoutes(router, { pages, confirmLogin, passkeys, logins, credentials });
  sessionPageRoutes(router, { pages, logins });
  tokenPageRoutes(router, {
    pages,
    confirmLogin,
    accessTokens: stores.accessTokens,
    tokenIssuer: oauth.tokenIssuer,
    authorizer: deps.authorizer,
    serviceNames: deps.serviceNames,
    titleOfService: oauth.titleOfService,
    maxLifetimeSeconds: config.Hub.token_expires_in_max_seconds,
    newTokens: createShownOnce(createSealer(secrets, 'shown-once'), 'token'),
    findClient: (clientId) => oauth.clients.find(clientId),
  });
}
