import type { Logger } from 'pino';
import { issuerOf } from '../identity/oauth/endpoints/metadata-endpoint.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { Config } from '../platform/config/config.ts';
import type { Secret } from '../platform/config/secret.ts';
import { cookieValues } from '../platform/http/cookies.ts';
import type { Metrics } from '../platform/metrics/metrics.ts';
import type { ChangeSource } from '../platform/store/change-aware-cache.ts';
import { createAssertionSigner } from '../traffic/gateway/assertion.ts';
import { createConsentCookies } from '../traffic/gateway/consent-cookies.ts';
import { createCrossOriginLogin } from '../traffic/gateway/cross-origin-login.ts';
import { createForwardAuth } from '../traffic/gateway/forward-auth.ts';
import { createGateway } from '../traffic/gateway/gateway.ts';
import type { QuestionedHub } from '../traffic/gateway/gateway-questions.ts';
import { createGuard } from '../traffic/gateway/guard.ts';
import type { createHopForwarder, HopForwarder } from '../traffic/gateway/hop-forwarder.ts';
import { createHostRules } from '../traffic/gateway/host-rules.ts';
import { createLiveAccess } from '../traffic/gateway/live-access.ts';
import { createLoginAccess } from '../traffic/gateway/login-access.ts';
import { createLoginRedirects } from '../traffic/gateway/login-redirects.ts';
import { createProtectedResources } from '../traffic/gateway/protected-resources.ts';
import type { RouteAccess } from '../traffic/gateway/route-access.ts';
import { createServerGuard } from '../traffic/gateway/server-guard.ts';
import { createBeginServerLogin } from '../traffic/gateway/server-login.ts';
import { createTraffic } from '../traffic/gateway/traffic.ts';
import { createForwarder } from '../traffic/proxy/forwarder.ts';
import { createLiveConnections } from '../traffic/proxy/live-connections.ts';
import type { RouteTable } from '../traffic/proxy/route-table.ts';
import { createWebSocketForwarder } from '../traffic/proxy/websocket-forwarder.ts';
import type { Site } from './site.ts';

/** What the gateway has to know of the hub: within its process, or by asking it. */
export interface GatewayBackend
  extends Pick<
    QuestionedHub,
    'findVisitor' | 'userOfSession' | 'groupNamesOf' | 'infoOf' | 'exchangeCode'
  > {
  readonly routes: RouteTable;
  readonly changes: ChangeSource;
  readonly access: RouteAccess;
  readonly onSessionEnd: LoginSessions['onEnd'];
  /** Of the OAuth client of a guarded route. */
  readonly allowedScopes: (clientId: string) => readonly string[];
}

/** The guard, the server guard, the forwarders and the gateway over a proxy table. */
export function assembleGateway(
  deps: Site & {
    readonly config: Pick<Config, 'Proxy' | 'publicUrl'>;
    readonly gatewaySecrets: readonly Secret[];
    readonly backend: GatewayBackend;
    readonly count: Metrics['countForwarded'];
    readonly ways: Pick<
      Parameters<typeof createGateway>[0],
      'renderNotReadyPage' | 'leaveUpgrade' | 'isOutdated'
    >;
    /** How instances are reached on which a route runs, where there may be any. */
    readonly createHops?: (
      parts: Pick<
        Parameters<typeof createHopForwarder>[0],
        'liveConnections' | 'noteRefused' | 'answers' | 'clientAddress' | 'config' | 'log'
      >,
    ) => HopForwarder;
    readonly log: Logger;
    readonly disposables: AsyncDisposableStack;
  },
) {
  const { backend, disposables, urls, errorAnswers } = deps;
  const { Proxy: proxyConfig, publicUrl } = deps.config;
  const { changes, userOfSession } = backend;
  const liveConnections = createLiveConnections();
  /** Under the names by which the features ask for it. */
  const base = {
    ...backend,
    config: proxyConfig,
    publicUrl,
    issuer: issuerOf(publicUrl),
    secrets: deps.gatewaySecrets,
    origins: deps.origins,
    clientAddress: deps.clientAddress,
    answers: errorAnswers,
    isSecure: deps.isHttps,
    hubPath: urls.hub,
    database: changes,
    liveConnections,
    log: deps.log,
  };
  const traffic = createTraffic({
    ...base,
    accessLog: proxyConfig.access_log,
    count: deps.count,
  });
  const assertions = createAssertionSigner(base);
  const forwarder = disposables.use(
    createForwarder({
      ...base,
      onClosed: traffic.requestClosed,
      // What an upstream did is logged where it was seen.
      answerError: (req, res, error) => errorAnswers.respond(req, res, error, { isExpected: true }),
    }),
  );
  const webSockets = disposables.use(createWebSocketForwarder(base));
  const hops = deps.createHops?.({
    ...base,
    noteRefused: (req, res) => void res.once('close', () => traffic.requestClosed(req, res, {})),
  });
  if (hops !== undefined) disposables.use(hops);
  const consentCookies = createConsentCookies(base);
  const crossOriginLogin = createCrossOriginLogin({
    ...base,
    now: changes.now,
    path: `${urls.hub}arrive`,
    questionUrl: urls.openServerThen,
    sessionIdAliases: deps.jupyterHub.sessionIdAliases,
    answers: consentCookies,
  });
  const loginAccess = createLoginAccess({
    ...base,
    sessionIdsIn:
      crossOriginLogin?.sessionIdsIn ??
      ((cookieHeader) => cookieValues(cookieHeader, deps.serverGuardSessionIdCookie)),
  });
  const resources = createProtectedResources(base);
  const serverGuard = createServerGuard({
    ...base,
    logins: loginAccess,
    answers: consentCookies,
    ways: createLoginRedirects({
      crossOriginLogin,
      beginLogin: createBeginServerLogin({
        forwarder,
        publicUrl,
        authorizePath: `${deps.apiPath}oauth2/authorize`,
      }),
      loginUrl: urls.loginThen,
      questionUrl: urls.openServerThen,
    }),
  });
  const guard = resources.announcedBy(
    createGuard({
      ...base,
      assertions,
      clients: backend,
      hubApi: { ...backend, authorizer: backend },
    }),
  );
  disposables.use(
    createLiveAccess({
      ...base,
      connections: liveConnections,
      loginAccess,
      logins: { find: userOfSession, onEnd: backend.onSessionEnd },
    }),
  );
  const gateway = createGateway({
    ...base,
    hostRules: createHostRules({ ...base, apiPath: deps.apiPath }),
    crossOriginLogin,
    guard,
    forwardAuth: createForwardAuth({
      ...base,
      guard,
      kind: proxyConfig.forward_auth_headers,
      isOutdated: deps.ways.isOutdated ?? (() => false),
    }),
    serverGuard: resources.announcedBy(serverGuard),
    resources,
    forwarder,
    webSockets,
    hops,
    traffic,
    ...deps.ways,
  });
  const streams = {
    endStreams: () => liveConnections.endStreams('shutting_down'),
    cutRest: () => void liveConnections.closeWhere(() => true, 'shutting_down'),
  };
  return {
    gateway,
    webSockets,
    streams,
    assertions,
    consentCookies,
    crossOriginLogin,
    liveConnections,
  };
}
