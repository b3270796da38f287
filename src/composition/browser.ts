import Koa from 'koa';
import { callerMiddleware, createLiveCallers } from '../entrances/api/caller-middleware.ts';
import type { Entrance } from '../entrances/pages/forms/binding.ts';
import { type ConfirmLogin, createConfirmLogin } from '../entrances/pages/login/confirm-login.ts';
import { sendToLogin } from '../entrances/pages/login/external-login-routes.ts';
import { createLogIn } from '../entrances/pages/login/log-in.ts';
import { createPendingForms } from '../entrances/pages/login/pending-forms.ts';
import { showConsent } from '../entrances/pages/login/show-consent.ts';
import { createPageContext, type PageContext } from '../entrances/pages/page-context.ts';
import { createSavedInput } from '../entrances/pages/saved-input.ts';
import { createLanding } from '../entrances/pages/servers/landing.ts';
import { hasOpenedServer } from '../entrances/pages/servers/opened-servers.ts';
import { createAuthorizationEndpoint } from '../identity/oauth/endpoints/authorization-endpoint.ts';
import { createDeviceAuthorizationEndpoint } from '../identity/oauth/endpoints/device-authorization-endpoint.ts';
import { createIntrospectionEndpoint } from '../identity/oauth/endpoints/introspection-endpoint.ts';
import {
  createKeySetEndpoint,
  createMetadataEndpoint,
  issuerOf,
  metadataPaths,
} from '../identity/oauth/endpoints/metadata-endpoint.ts';
import { createPushEndpoint } from '../identity/oauth/endpoints/pushed-requests.ts';
import { createRevocationEndpoint } from '../identity/oauth/endpoints/revocation-endpoint.ts';
import { createTokenEndpoint } from '../identity/oauth/endpoints/token-endpoint.ts';
import { createUserInfoEndpoint } from '../identity/oauth/endpoints/userinfo-endpoint.ts';
import { type CsrfProtection, createCsrfProtection } from '../identity/sessions/csrf.ts';
import {
  authenticatedAtOf,
  createBrowserSessions,
  loginOf,
} from '../identity/sessions/session-middleware.ts';
import { createKeyedHash } from '../platform/crypto/hash.ts';
import { createSealer } from '../platform/crypto/sealer.ts';
import { sessionIdCookie } from '../platform/protocol/cookie-names.ts';
import { serverPrefix } from '../workloads/servers/server.ts';
import type { Accounted } from './accounts.ts';
import { grow } from './grow.ts';

/** The record with what pages need of a browser: its session, its forms, its login; and with who asks. */
export type Visited = Awaited<ReturnType<typeof openBrowser>>;

export const openBrowser = (accounted: Accounted) =>
  grow(accounted)
    .with((hub) => ({
      app: new Koa(),
      entrances: [] as Entrance[],
      liveCallers: hub.disposables.use(
        createLiveCallers({ ...hub, onSessionEnd: hub.logins.onEnd }),
      ),
      csrf: createCsrfProtection({
        keyedHash: createKeyedHash(hub.secrets, 'csrf'),
        publicUrl: hub.publicUrl,
        cookiePath: hub.urls.hub,
      }),
    }))
    .with(openSessions)
    .with((hub) => ({
      landing: createLanding({ ...hub, config: hub.config.Hub }),
    }))
    .with((hub) => ({
      logIn: createLogIn({
        ...hub,
        sealer: createSealer(hub.secrets, 'login-step'),
        isSecure: hub.isHttps,
      }),
    }))
    .with((hub) => ({
      confirmLogin: createConfirmLogin({
        ...hub,
        pendingForms: createPendingForms({
          sealer: createSealer(hub.secrets, 'pending-form'),
          formLimitBytes: hub.config.Proxy.api_body_size,
          now: hub.now,
        }),
        kept: hub.keyv.space('pending-forms'),
      }),
      callerMiddleware: callerMiddleware({
        ...hub,
        tokens: hub.tokenVerifier,
        hasCurrentLogin: hub.revalidation.hasCurrentLogin,
      }),
    }))
    .with((hub) => ({ oauth: createOAuthEndpoints(hub) })).grown;

function openSessions(hub: Accounted & { readonly app: Koa; readonly csrf: CsrfProtection }) {
  const { config, keyv, secrets, urls } = hub;
  return {
    sessions: createBrowserSessions({
      ...hub,
      store: keyv.space('sessions'),
      sealer: createSealer(secrets, 'login-cookie'),
      isSecure: hub.isHttps,
      lifetimeSeconds: config.loginLifetimeSeconds,
      sessionIdCookies: new Set([
        sessionIdCookie,
        hub.serverGuardSessionIdCookie,
        ...hub.jupyterHub.sessionIdAliases,
      ]),
      revalidate: hub.revalidation.revalidate,
      logoutPath: urls.logout,
    }),
    pages: createPageContext({
      ...hub,
      savedInput: createSavedInput({
        ...hub,
        sealer: createSealer(secrets, 'saved-input'),
        store: keyv.space('saved-input'),
        cookiePath: urls.hub,
      }),
      formLimitBytes: config.Proxy.api_body_size,
    }),
  };
}

/** The authorization server over HTTP. */
export function createOAuthEndpoints(
  hub: Accounted & {
    readonly csrf: CsrfProtection;
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
  },
) {
  const { publicUrl, catalogue } = hub;
  const issuer = issuerOf(publicUrl);
  const countRefusal = hub.metrics.countOAuthRefusal;
  const findRole = (name: string) => hub.roles.findByName(name);
  const authorization = createAuthorizationEndpoint({
    ...hub,
    issuer,
    findRole,
    currentLogin: async (ctx) => {
      const current = loginOf(ctx);
      if (current === undefined) return undefined;
      const { user, session } = current;
      const authenticatedAt = authenticatedAtOf(ctx);
      return { user, sessionId: session.sessionId, authenticatedAt, acr: session.acr };
    },
    redirectToLogin: (ctx, url) => sendToLogin(ctx, hub, url),
    async confirmLogin(ctx, next) {
      const login = loginOf(ctx);
      if (login !== undefined) await hub.confirmLogin.ask(ctx, login, { next });
    },
    showConsent: (ctx, view) => showConsent(ctx, view, hub.pages),
    hasOpened: (ctx, { serverId: id }) => id !== undefined && hasOpenedServer(ctx, { id }),
    requireCsrf: (ctx, form) => hub.csrf.require(ctx, form.get('_csrf') ?? undefined),
    countRefusal,
  });
  return {
    showAuthorization: authorization.show,
    decideAuthorization: authorization.decide,
    token: createTokenEndpoint({ ...hub, countRefusal }),
    deviceAuthorization: createDeviceAuthorizationEndpoint({
      ...hub,
      findRole,
      verificationUri: new URL(hub.urls.device, publicUrl).href,
      countRefusal,
    }),
    push: createPushEndpoint({ ...hub, issuer, findRole, countRefusal }),
    userInfo: createUserInfoEndpoint({ ...hub, countRefusal }),
    introspection: createIntrospectionEndpoint({
      ...hub,
      issuer,
      addressOf(target) {
        const { prefix, origin = hub.origins.of(target) } =
          target.kind === 'service'
            ? (hub.registry.find(target.name) ?? {})
            : { prefix: serverPrefix(hub.basePath, target.userName, target.serverName) };
        return prefix && origin + prefix;
      },
      countRefusal,
    }),
    revocation: createRevocationEndpoint({ ...hub, countRefusal }),
    metadata: createMetadataEndpoint({
      publicUrl,
      scopeNames: catalogue.names,
      hasAgents: hub.config.Hub.client_documents !== 'none',
    }),
    metadataPaths: metadataPaths(publicUrl),
    keySet: createKeySetEndpoint(hub),
  };
}
