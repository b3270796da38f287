import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { Secret } from '../config/secret.ts';
import type { HubError } from '../errors.ts';
import { createAssertionSigner } from '../gateway/assertion.ts';
import { createGateway } from '../gateway/gateway.ts';
import { createGuard } from '../gateway/guard.ts';
import { createLiveAccess } from '../gateway/live-access.ts';
import { createRouteAccess } from '../gateway/route-access.ts';
import type { ClientAddressReader } from '../http/client-address.ts';
import type { ErrorAnswers } from '../http/error-answers.ts';
import { issuerOf } from '../oauth/endpoints/metadata-endpoint.ts';
import { createForwarder } from '../proxy/forwarder.ts';
import { createLiveConnections } from '../proxy/live-connections.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import { createWebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import type { Authority } from '../rbac/authority.ts';
import type { Caller } from '../rbac/caller.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { HubDatabase } from '../store/database.ts';
import type { ComposedOAuth } from './compose-oauth.ts';

/** Creates the guard, the forwarders and the gateway over the proxy table. */
export function composeGateway(
  deps: {
    readonly config: Config;
    readonly secrets: readonly Secret[];
    readonly database: HubDatabase;
    readonly oauth: ComposedOAuth;
    readonly authority: Authority;
    readonly logins: LoginSessions;
    readonly routes: RouteTable;
    readonly clientAddress: ClientAddressReader;
    readonly errorAnswers: ErrorAnswers;
    readonly renderNotReadyPage: (route: Route, url: string) => { html: string; error: HubError };
    readonly hasCurrentLogin: (caller: Caller) => Promise<boolean>;
    readonly noteActivity: (userId: string) => void;
    readonly log: Logger;
  },
  disposables: AsyncDisposableStack,
) {
  const { config, secrets, database, oauth, authority, routes, log } = deps;
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
  const access = createRouteAccess({
    tokens: oauth.tokenVerifier,
    authority,
    hasCurrentLogin: deps.hasCurrentLogin,
    noteActivity: deps.noteActivity,
  });
  const guard = createGuard({
    secrets,
    publicUrl,
    basePath,
    issuer,
    database,
    assertions,
    clients: oauth.clients,
    hubApi: { access, authority, exchangeCode: oauth.exchangeCode },
  });
  disposables.use(
    createLiveAccess({
      connections: liveConnections,
      database,
      routes,
      access,
      logins: deps.logins,
      log,
    }),
  );
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
