import { sendToLogin } from '../entrances/pages/login/external-login-routes.ts';
import { showConsent } from '../entrances/pages/login/show-consent.ts';
import { hasOpenedServer } from '../entrances/pages/servers/opened-servers.ts';
import { createAuthorizationEndpoint } from '../identity/oauth/endpoints/authorization-endpoint.ts';
import { createIntrospectionEndpoint } from '../identity/oauth/endpoints/introspection-endpoint.ts';
import {
  createMetadataEndpoint,
  issuerOf,
  metadataPaths,
} from '../identity/oauth/endpoints/metadata-endpoint.ts';
import { createRevocationEndpoint } from '../identity/oauth/endpoints/revocation-endpoint.ts';
import { createTokenEndpoint } from '../identity/oauth/endpoints/token-endpoint.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import { loginOf } from '../identity/sessions/session-middleware.ts';
import type { OAuthEndpoints } from './app.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';

/** The authorization server over HTTP. */
export function createOAuthEndpoints(
  { config, stores, metrics, log }: Foundation,
  deps: {
    readonly oauth: Identity;
    readonly authorizer: Authorizer;
    readonly browser: Pick<ComposedBrowser, 'csrf' | 'pages'>;
    readonly login: Pick<Identity, 'authenticators' | 'externalLogins'>;
  },
): OAuthEndpoints {
  const { publicUrl } = config;
  const { oauth, authorizer } = deps;
  const { csrf, pages } = deps.browser;
  const { authenticators, externalLogins } = deps.login;
  const issuer = issuerOf(publicUrl);
  const countRefusal = metrics.countOAuthRefusal;
  const authorization = createAuthorizationEndpoint({
    clients: oauth.clients,
    issuer,
    authorizationCodes: stores.authorizationCodes,
    accessTokens: stores.accessTokens,
    authorizer,
    findRole: (name) => stores.roles.findByName(name),
    currentLogin: async (ctx) => {
      const current = loginOf(ctx);
      return current && { user: current.user, sessionId: current.session.sessionId };
    },
    redirectToLogin: (ctx) =>
      sendToLogin(ctx, { pages, authenticators, externalLogins, metrics, publicUrl }),
    showConsent: (ctx, view) => showConsent(ctx, view, pages),
    titleOfService: oauth.titleOfService,
    hasOpened: (ctx, { serverId: id }) => id !== undefined && hasOpenedServer(ctx, { id }),
    requireCsrf: (ctx, form) => csrf.require(ctx, form.get('_csrf') ?? undefined),
    countRefusal,
    log,
  });
  const { clientAuthentication, tokenVerifier } = oauth;
  return {
    showAuthorization: authorization.show,
    decideAuthorization: authorization.decide,
    token: createTokenEndpoint({
      clientAuthentication,
      exchangeCode: oauth.exchangeCode,
      countRefusal,
    }),
    introspection: createIntrospectionEndpoint({
      clientAuthentication,
      tokenVerifier,
      authorizer,
      issuer,
      countRefusal,
    }),
    revocation: createRevocationEndpoint({
      clientAuthentication,
      accessTokens: stores.accessTokens,
      countRefusal,
      log,
    }),
    metadata: createMetadataEndpoint({ publicUrl, scopeNames: authorizer.catalogue.names }),
    metadataPaths: metadataPaths(publicUrl),
  };
}
