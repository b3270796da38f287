import type Router from '@koa/router';
import { confirmLoginRoutes } from '../entrances/pages/login/confirm-login-routes.ts';
import { externalLoginRoutes } from '../entrances/pages/login/external-login-routes.ts';
import { invitationRoutes } from '../entrances/pages/login/invitation-routes.ts';
import { loginRoutes } from '../entrances/pages/login/login-routes.ts';
import { loginStepRoutes } from '../entrances/pages/login/login-step-routes.ts';
import { passkeyQuestionRoute } from '../entrances/pages/login/passkey-question-route.ts';
import { setUpRoutes } from '../entrances/pages/login/set-up-routes.ts';
import { setUpSecondFactorRoutes } from '../entrances/pages/login/set-up-second-factor-routes.ts';
import type { EndUpstreamLogins } from '../identity/authentication/upstream-logout.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { createRedirectLoopGuard } from '../platform/http/redirect-loop-guard.ts';
import { loginRoundCookie } from '../platform/protocol/cookie-names.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Working } from './servers.ts';

/** Every way to a login, and to the password for one. */
export function addLoginPages(
  router: Router,
  { config, secrets, stores, metrics }: Foundation,
  deps: {
    readonly browser: ComposedBrowser;
    readonly login: Identity;
    readonly logins: LoginSessions;
    readonly accounts: ComposedAccounts;
    readonly servers: Pick<Working, 'servers'>;
    readonly endUpstreamLogins: EndUpstreamLogins;
  },
): void {
  const { pages, logIn, confirmLogin, sessions } = deps.browser;
  const { authenticators, loginService, passwordHasher, externalLogins } = deps.login;
  const { passwords, secondFactors, partialLogins, invitations, firstAdministrator, recentLogin } =
    deps.accounts;
  const { passkeys, passkeyLogin } = deps.accounts;
  loginRoutes(router, {
    pages,
    authenticators,
    loginService,
    sessions,
    idTokenOf: (session) => deps.logins.idTokenOf(session),
    publicUrl: config.publicUrl,
    metrics,
    isAutoLogin: config.Authenticator.auto_login,
    afterLogout: async (userName) => {
      if (config.Hub.shutdown_on_logout) await deps.servers.servers.stopAllOf(userName);
    },
    logIn,
    passkeyLogin,
    loopGuard: createRedirectLoopGuard(createSealer(secrets, 'login-round'), loginRoundCookie),
  });
  loginStepRoutes(router, {
    pages,
    logIn,
    secondFactors,
    passkeys,
    passwords,
    passwordHasher,
    credentials: stores.credentials,
    metrics,
  });
  setUpSecondFactorRoutes(router, { pages, logIn, secondFactors, passkeys });
  passkeyQuestionRoute(router, {
    pages,
    logIn,
    partialLogins,
    passkeys,
    passkeyLogin,
    credentials: stores.credentials,
  });
  externalLoginRoutes(router, {
    pages,
    authenticators,
    externalLogins,
    endUpstreamLogins: deps.endUpstreamLogins,
    logIn,
    confirmLogin,
    metrics,
  });
  confirmLoginRoutes(router, {
    pages,
    confirmLogin,
    recentLogin,
    externalLogins,
    authenticators,
    metrics,
  });
  invitationRoutes(router, { pages, invitations, loginService, authenticators, passwords, logIn });
  setUpRoutes(router, {
    pages,
    firstAdministrator,
    passwords,
    loginService,
    authenticators,
    logIn,
  });
}
