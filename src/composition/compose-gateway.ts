import type { LoginRevalidation } from '../authentication/login-revalidation.ts';
import { createArrivals } from '../gateway/arrivals.ts';
import { createAssertionSigner } from '../gateway/assertion.ts';
import { createDoor } from '../gateway/door.ts';
import { createDoorAnswers } from '../gateway/door-answers.ts';
import { createDoorWays } from '../gateway/door-ways.ts';
import { createGateway } from '../gateway/gateway.ts';
import { createGuard } from '../gateway/guard.ts';
import { createHopForwarder } from '../gateway/hop-forwarder.ts';
import { createHostRules } from '../gateway/host-rules.ts';
import { createLiveAccess } from '../gateway/live-access.ts';
import { createLoginAccess } from '../gateway/login-access.ts';
import { createRouteAccess } from '../gateway/route-access.ts';
import { createBeginServerLogin } from '../gateway/server-login.ts';
import { createTraffic } from '../gateway/traffic.ts';
import { cookieValues } from '../http/cookies.ts';
import { issuerOf } from '../oauth/endpoints/metadata-endpoint.ts';
import { createNotReadyRenderer } from '../pages/services/not-ready-renderer.ts';
import { createForwarder } from '../proxy/forwarder.ts';
import { createLiveConnections } from '../proxy/live-connections.ts';
import { createWebSocketForwarder } from '../proxy/websocket-forwarder.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { ComposedInstances } from './compose-instances.ts';
import type { ComposedOAuth } from './compose-oauth.ts';
import type { ComposedServers } from './compose-servers.ts';
import type { ComposedServices } from './compose-services.ts';
import type { Site } from './compose-site.ts';
import type { Foundation } from './foundation.ts';

/** The guard, the forwarders and the gateway over the proxy table. */
export type ComposedGateway = ReturnType<typeof composeGateway>;

export function composeGateway(
  { config, secrets, database, metrics, log, disposables }: Foundation,
  deps: {
    readonly site: Site;
    readonly oauth: ComposedOAuth;
    readonly authorizer: Authorizer;
    readonly logins: LoginSessions;
    readonly services: ComposedServices;
    readonly instances: ComposedInstances;
    readonly servers: Pick<ComposedServers, 'activityLog'>;
    readonly revalidation: Pick<LoginRevalidation, 'hasCurrentLogin' | 'revalidate'>;
  },
) {
  const { site, oauth, authorizer } = deps;
  const { routes, registry } = deps.services;
  const { Proxy: proxyConfig, publicUrl } = config;
  const issuer = issuerOf(publicUrl);
  const { errorAnswers } = site;
  const liveConnections = createLiveConnections();
  const userOfSession = async (sessionId: string) => (await deps.logins.find(sessionId))?.user.name;
  const traffic = createTraffic({
    accessLog: proxyConfig.access_log,
    clientAddress: site.clientAddress,
    userOfSession,
    count: metrics.countForwarded,
    log,
  });
  const assertions = createAssertionSigner({ secrets, issuer });
  const forwarder = disposables.use(
    createForwarder({
      config: proxyConfig,
      log,
      routes,
      liveConnections,
      onClosed: (req, res, tags) => traffic.requestClosed(req, res, tags.route, tags),
      // What an upstream did is logged where it was seen.
      answerError: (req, res, error) => errorAnswers.respond(req, res, error, { isExpected: true }),
    }),
  );
  const webSockets = disposables.use(
    createWebSocketForwarder({ config: proxyConfig, log, liveConnections }),
  );
  const hops = disposables.use(
    createHopForwarder({
      config: proxyConfig,
      log,
      proof: deps.instances.hopProof,
      findInstance: deps.instances.directory.addressOf,
      clientAddress: site.clientAddress,
      liveConnections,
      answers: errorAnswers,
      noteRefused: (req, res) =>
        void res.once('close', () => traffic.requestClosed(req, res, undefined, {})),
    }),
  );
  const access = createRouteAccess({
    tokens: oauth.tokenVerifier,
    authorizer,
    revalidation: deps.revalidation,
    activity: deps.servers.activityLog,
  });
  const doorAnswers = createDoorAnswers({ secrets, isSecure: site.isHttps });
  const arrivals = createArrivals({
    now: database.now,
    secrets,
    origins: site.origins,
    clientAddress: site.clientAddress,
    isSecure: site.isHttps,
    path: `${site.urls.hub}arrive`,
    questionUrl: site.urls.openServerThen,
    sessionIdAliases: site.jupyterHub.sessionIdAliases,
    answers: doorAnswers,
  });
  const loginAccess = createLoginAccess({
    logins: deps.logins,
    revalidation: deps.revalidation,
    authorizer,
    access,
    sessionIdsIn:
      arrivals?.sessionIdsIn ??
      ((cookieHeader) => cookieValues(cookieHeader, site.doorSessionIdCookie)),
  });
  const door = createDoor({
    database,
    access,
    logins: loginAccess,
    answers: doorAnswers,
    ways: createDoorWays({
      arrivals,
      beginLogin: createBeginServerLogin({
        forwarder,
        publicUrl,
        authorizePath: `${site.apiPath}oauth2/authorize`,
      }),
      loginUrl: site.urls.loginThen,
      questionUrl: site.urls.openServerThen,
    }),
  });
  const guard = createGuard({
    secrets,
    origins: site.origins,
    publicUrl,
    issuer,
    database,
    assertions,
    clients: oauth.clients,
    hubApi: { access, authorizer, exchangeCode: oauth.exchangeCode },
  });
  disposables.use(
    createLiveAccess({
      connections: liveConnections,
      database,
      routes,
      access,
      loginAccess,
      logins: deps.logins,
      log,
    }),
  );
  const gateway = createGateway({
    routes,
    hostRules: createHostRules({
      origins: site.origins,
      clientAddress: site.clientAddress,
      hubPath: site.urls.hub,
      apiPath: site.apiPath,
    }),
    arrivals,
    guard,
    door,
    forwarder,
    webSockets,
    hops,
    clientAddress: site.clientAddress,
    answers: errorAnswers,
    renderNotReadyPage: createNotReadyRenderer(site.layout, (name) => registry.statusOf(name)),
    traffic,
    userOfSession,
  });
  const streams = {
    endStreams: () => liveConnections.endStreams('shutting_down'),
    cutRest: () => void liveConnections.closeWhere(() => true, 'shutting_down'),
  };
  return { gateway, webSockets, streams, assertions, access, doorAnswers, arrivals };
}
