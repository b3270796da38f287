import type { Logger } from 'pino';
import type { OAuthEndpoints } from '../app.ts';
import { onlyExternalOf } from '../authentication/create-authenticators.ts';
import type { Config } from '../config/config.ts';
import { safeRedirectTarget } from '../http/redirect-target.ts';
import { createAuthorizationEndpoint } from '../oauth/endpoints/authorization-endpoint.ts';
import { createIntrospectionEndpoint } from '../oauth/endpoints/introspection-endpoint.ts';
import {
  createMetadataEndpoint,
  issuerOf,
  metadataPaths,
} from '../oauth/endpoints/metadata-endpoint.ts';
import { createRevocationEndpoint } from '../oauth/endpoints/revocation-endpoint.ts';
import { createTokenEndpoint } from '../oauth/endpoints/token-endpoint.ts';
import { beginExternalLogin } from '../pages/login/external-login-routes.ts';
import { showConsent } from '../pages/login/show-consent.ts';
import { loginOf } from '../sessions/session-middleware.ts';
import type { HubParts } from './hub-parts.ts';

/** Creates the endpoints of the authorization server. */
export function createOAuthEndpoints(deps: HubParts, config: Config, log: Logger): OAuthEndpoints {
  const { publicUrl } = config;
  const { stores, oauth, authority, csrf, pages, login, externalLogins, metrics } = deps;
  const issuer = issuerOf(publicUrl);
  const countRefusal = deps.metrics.countOAuthRefusal;
  const authorization = createAuthorizationEndpoint({
    clients: oauth.clients,
    publicUrl,
    issuer,
    authorizationCodes: stores.authorizationCodes,
    accessTokens: stores.accessTokens,
    authority,
    findRole: (name) => stores.roles.findByName(name),
    currentLogin: async (ctx) => {
      const current = loginOf(ctx);
      return current && { user: current.user, sessionId: current.session.sessionId };
    },
    async redirectToLogin(ctx) {
      const external = onlyExternalOf(login.authenticators);
      if (external === undefined) return pages.redirectToLogin(ctx);
      const next = safeRedirectTarget(ctx.originalUrl, publicUrl);
      const { authenticators } = login;
      const wish = { authenticator: external.name, next };
      await beginExternalLogin(ctx, wish, { pages, authenticators, externalLogins, metrics });
    },
    showConsent: (ctx, view) => showConsent(ctx, view, pages),
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
      authority,
      issuer,
      countRefusal,
    }),
    revocation: createRevocationEndpoint({
      clientAuthentication,
      accessTokens: stores.accessTokens,
      countRefusal,
      log,
    }),
    metadata: createMetadataEndpoint({ publicUrl, scopeNames: authority.catalogue.names }),
    metadataPaths: metadataPaths(publicUrl),
  };
}
