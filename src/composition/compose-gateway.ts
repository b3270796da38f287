import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import { HubError } from '../errors.ts';
import { createAssertionSigner } from '../gateway/assertion.ts';
import { createGateway } from '../gateway/gateway.ts';
import { createGuard } from '../gateway/guard.ts';
import { createLiveAccess } from '../gateway/live-access.ts';
import type { ClientAddressReader } from '../http/client-address.ts';
import type { ErrorAnswers } from '../http/error-answers.ts';
import { issuerOf } from '../oauth/endpoints/metadata-endpoint.ts';
import { OAuthError } from '../oauth/oauth-error.ts';
import type { AccessToken } from '../oauth/tokens/access-token.ts';
import { createForwarder } from '../proxy/forwarder.ts';
import { createLiveConnections } from '../proxy/live-connections.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { createWebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import { checkAccess } from '../rbac/access-check.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { HubDatabase } from '../store/database.ts';
import type { ComposedOAuth } from './compose-oauth.ts';
import type { Stores } from './stores.ts';

/** Creates the guard, the forwarders and the gateway over the proxy table. */
export function composeGateway(
  deps: {
    readonly config: Config;
    readonly secrets: readonly Secret[];
    readonly database: HubDatabase;
    readonly stores: Stores;
    readonly oauth: ComposedOAuth;
    readonly authority: Authority;
    readonly logins: LoginSessions;
    readonly routes: RouteTable;
    readonly clientAddress: ClientAddressReader;
    readonly errorAnswers: ErrorAnswers;
    readonly renderNotReadyPage: (route: Route, url: string) => { html: string; error: HubError };
    readonly admit: (caller: Caller) => Promise<boolean>;
    /** As `admit`, for the token behind a connection that stays open. */
    readonly isTokenOfCurrentLogin: (token: AccessToken) => Promise<boolean>;
    readonly log: Logger;
  },
  disposables: AsyncDisposableStack,
) {
  const { config, secrets, database, stores, oauth, authority, routes, log } = deps;
  const { Proxy: proxyConfig, publicUrl, basePath } = config;
  const issuer = issuerOf(publicUrl);
  const { errorAnswers } = deps;
  const liveConnections = createLiveConnections();
  const assertions = createAssertionSigner({ secrets, issuer });
  const forwarder = disposables.use(
    createForwarder({
      config: proxyConfig,
      log,
      routes,
      liveConnections,
      // What an upstream did is logged where it was seen.
      answerError: (req, res, error) => errorAnswers.respond(req, res, error, { isExpected: true }),
    }),
  );
  const webSockets = disposables.use(
    createWebSocketForwarder({ config: proxyConfig, log, liveConnections }),
  );
  routes.onRemove((route, replacement) => {
    // What moved may finish what it is doing where it was; what is guarded otherwise now may not.
    if (replacement?.access === route.access) {
      liveConnections.endStreams('route_removed', route);
    } else {
      liveConnections.closeWhere((tags) => tags.route === route, 'route_removed');
    }
  });

  const guard = createGuard({
    secrets,
    publicUrl,
    basePath,
    issuer,
    database,
    assertions,
    clients: oauth.clients,
    hubApi: {
      tokens: oauth.tokenVerifier,
      membership: authority.membership,
      groupsOf: authority.groupNamesOf,
      admit: deps.admit,
      async exchangeCode(clientId, { code, redirectUri, codeVerifier }) {
        const client = await oauth.clients.find(clientId);
        if (client === undefined)
          throw new HubError('not_found', 'There is no such client any more.');
        try {
          const granted = await oauth.exchangeCode(client, { code, redirectUri, codeVerifier });
          return {
            outcome: 'issued',
            accessToken: granted.issued.token,
            expiresInSeconds: granted.lifetimeSeconds,
          };
        } catch (error) {
          if (error instanceof OAuthError)
            return { outcome: 'refused', description: error.message };
          throw error;
        }
      },
    },
  });

  const liveAccess = disposables.use(
    createLiveAccess({
      connections: liveConnections,
      database,
      log,
      isSessionOpen: async (sessionId) => (await deps.logins.find(sessionId)) !== undefined,
      async isStillAdmitted(accessTokenId, routePrefix) {
        const token = await stores.accessTokens.findById(accessTokenId);
        const owner = routes.find(routePrefix)?.owner;
        if (token === undefined || owner === undefined || owner.kind === 'extra') return false;
        if (!(await deps.isTokenOfCurrentLogin(token))) return false;
        const client =
          token.clientId === undefined ? undefined : await oauth.clients.find(token.clientId);
        const scopes = await authority.effectiveScopes({
          owner: token.owner,
          scopes: token.scopes,
          client: client?.identity,
        });
        const [scope, resource] =
          owner.kind === 'service'
            ? (['access:services', owner] as const)
            : (['access:servers', owner] as const);
        return (
          checkAccess(scopes, scope, resource, await authority.membershipFor(scopes)) === 'granted'
        );
      },
    }),
  );
  disposables.defer(deps.logins.onEnd((sessionId) => liveAccess.endSession(sessionId)));

  const gateway = createGateway({
    routes,
    guard,
    forwarder,
    webSockets,
    clientAddress: deps.clientAddress,
    answers: errorAnswers,
    renderNotReadyPage: deps.renderNotReadyPage,
    userOfSession: async (sessionId) => (await deps.logins.find(sessionId))?.user.name,
  });
  const streams = {
    endStreams: () => liveConnections.endStreams('shutting_down'),
    cutRest: () => void liveConnections.closeWhere(() => true, 'shutting_down'),
  };
  return { gateway, forwarder, webSockets, streams, assertions };
}
