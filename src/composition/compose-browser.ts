import type Koa from 'koa';
import type { Announcements } from '../entrances/pages/announcements.ts';
import { createConfirmLogin } from '../entrances/pages/login/confirm-login.ts';
import { createLogIn } from '../entrances/pages/login/log-in.ts';
import { createWaitingForms } from '../entrances/pages/login/waiting-forms.ts';
import { createPageContext } from '../entrances/pages/page-context.ts';
import { createSavedInput } from '../entrances/pages/saved-input.ts';
import { createLanding } from '../entrances/pages/servers/landing.ts';
import type { LoginRevalidation } from '../identity/authentication/login-revalidation.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { createCsrfProtection } from '../identity/sessions/csrf.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import { createBrowserSessions } from '../identity/sessions/session-middleware.ts';
import { createKeyedHash } from '../platform/crypto/keyed-hash.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { sessionIdCookie } from '../platform/protocol/cookie-names.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { Foundation } from './foundation.ts';
import type { Working } from './servers.ts';
import type { Site } from './site.ts';

/** What pages need of a browser: its session, its forms, its login. */
export type ComposedBrowser = ReturnType<typeof composeBrowser>;

export function composeBrowser(
  { config, database, keyv, log, metrics, secrets, stores }: Foundation,
  deps: {
    readonly app: Koa;
    readonly site: Site;
    readonly announcements: Announcements;
    readonly authorizer: Authorizer;
    readonly logins: LoginSessions;
    readonly accounts: Pick<ComposedAccounts, 'partialLogins' | 'recentLogin'>;
    readonly servers: Pick<Working, 'servers'>;
    readonly revalidation: Pick<LoginRevalidation, 'revalidate'>;
  },
) {
  const { app, site, announcements, authorizer, logins, accounts, servers, revalidation } = deps;
  const { isHttps, urls } = site;
  const { Hub, Proxy: proxyConfig, basePath, publicUrl } = config;
  const csrf = createCsrfProtection({
    keyedHash: createKeyedHash(secrets, 'csrf'),
    publicUrl,
    cookiePath: urls.hub,
  });
  const sessions = createBrowserSessions({
    app,
    store: keyv.space('sessions'),
    now: database.now,
    sealer: createSealer(secrets, 'login-cookie'),
    logins,
    basePath,
    isSecure: isHttps,
    lifetimeSeconds: config.loginLifetimeSeconds,
    sessionIdCookies: new Set([
      sessionIdCookie,
      site.serverGuardSessionIdCookie,
      ...site.jupyterHub.sessionIdAliases,
    ]),
    // Logging out works whatever the provider says.
    revalidate: async (found, ctx) =>
      ctx.path === urls.logout ? found : revalidation.revalidate(found),
  });
  const formLimitBytes = proxyConfig.api_body_size;
  const pages = createPageContext({
    ...site.layout,
    languages: site.languages,
    publicUrl,
    origins: site.origins,
    csrf,
    savedInput: createSavedInput({
      sealer: createSealer(secrets, 'kept-input'),
      csrf,
      store: keyv.space('kept-input'),
      publicUrl,
      cookiePath: urls.hub,
      now: database.now,
    }),
    authorizer,
    userInfo: stores.userInfo,
    announcements,
    formLimitBytes,
  });
  const landing = createLanding({
    config: Hub,
    basePath,
    urls,
    store: stores.serverStore,
    servers: servers.servers,
    pages,
  });
  const logIn = createLogIn({
    urls,
    sessions,
    partialLogins: accounts.partialLogins,
    sealer: createSealer(secrets, 'login-step'),
    metrics,
    landing,
    isSecure: isHttps,
  });
  const confirmLogin = createConfirmLogin({
    pages,
    recentLogin: accounts.recentLogin,
    sessions,
    logins,
    logIn,
    waitingForms: createWaitingForms({
      sealer: createSealer(secrets, 'waiting-form'),
      formLimitBytes,
      now: database.now,
    }),
    kept: keyv.space('waiting-forms'),
    publicUrl,
    log,
  });
  return { csrf, sessions, landing, announcements, pages, logIn, confirmLogin };
}
