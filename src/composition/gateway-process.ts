import type { Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createHopProof } from '../cluster/instances/hop-proof.ts';
import { Secret } from '../platform/config/secret.ts';
import { listen } from '../platform/http/server/listener.ts';
import { createHeldCertificates } from '../platform/http/tls/certificate-source.ts';
import { createRedirectServer } from '../platform/http/tls/redirect-server.ts';
import { ForwardedFigures } from '../platform/metrics/forwarded-figures.ts';
import type { ChangeSource } from '../platform/store/change-aware-cache.ts';
import { type ChangeSubject, createChangeListeners } from '../platform/store/change-subject.ts';
import type { GatewaySettings } from '../traffic/gateway/feed-events.ts';
import { createGatewayReporter } from '../traffic/gateway/gateway-report.ts';
import { readGatewayConfig, sharedPart } from '../traffic/gateway/gateway-settings.ts';
import { createHubForwarding } from '../traffic/gateway/hub-forwarding.ts';
import { connectToHub, type HubLinkOptions } from '../traffic/gateway/hub-link.ts';
import { requireOwnHub } from '../traffic/gateway/own-hub.ts';
import { createPublicServer } from '../traffic/gateway/public-server.ts';
import { createRemoteBackend } from '../traffic/gateway/remote-backend.ts';
import { createRouteMirror } from '../traffic/gateway/route-mirror.ts';
import { createForwarder } from '../traffic/proxy/forwarder.ts';
import { createLiveConnections } from '../traffic/proxy/live-connections.ts';
import { createRoute } from '../traffic/proxy/route.ts';
import { createRouteTable } from '../traffic/proxy/route-table.ts';
import { VerifyingAgent } from '../traffic/proxy/verifying-agent.ts';
import { createWebSocketForwarder } from '../traffic/proxy/websocket-forwarder.ts';
import { assembleGateway } from './assemble-gateway.ts';
import { openSite } from './site.ts';
import { inTraces, openTracing } from './tracing.ts';

/** A gateway that runs as a process of its own. Disposing of it ends its connections in good order. */
export interface GatewayProcess extends AsyncDisposable {
  readonly server: Server;
  readonly publicUrl: URL;
  /** Resolves, with the reason, when it has to end by itself. */
  readonly ended: Promise<string>;
  readonly shutdownSeconds: number;
}

export interface GatewayProcessOptions extends HubLinkOptions {
  readonly log: Logger;
  /** Where to listen in place of `Hub.bind_url`. */
  readonly bindUrl?: string | undefined;
  /** Where to send those who come by plain http to https. */
  readonly redirectBindUrl?: string | undefined;
  /** Whether the hub started it: then it ends when no hub comes back in `Hub.gateway_linger`. */
  readonly isLocal: boolean;
  /** Ends the start when it is aborted. */
  readonly signal: AbortSignal;
}

/** How long a hub that restarts is waited for before a request is sent to it once more. */
const hubReconnectSeconds = 10;
const lingerPollMs = 500;
/** How long the last report may take. */
const lastReportMs = 1_000;
/** By then every hub on a database has heard of a change. */
const slowestHubMs = 2_500;
/** How long a retired gateway keeps the connections it has. */
const drainMs = 12 * 3_600_000;

/** Builds the gateway of a hub that runs elsewhere. Throws with nothing left running. */
export async function createGatewayProcess(
  options: GatewayProcessOptions,
): Promise<GatewayProcess> {
  const { hubUrl, version, log, isLocal, identity, signal } = options;
  await using building = new AsyncDisposableStack();
  const link = building.use(await connectToHub(options, signal));
  const { settings } = link;
  const config = readGatewayConfig(settings.config);
  const gatewaySecrets = settings.secrets.map((text) => new Secret(text));
  const site = await openSite({ config, log }, version);
  const { Proxy: proxyConfig } = config;
  const ended = Promise.withResolvers<string>();

  const listeners = createChangeListeners({ log });
  // What a hub lets live until a time, its gateways must not see ended before.
  let clockOffsetMs = 0;
  const changes: ChangeSource = {
    now: () => clockOffsetMs + performance.now(),
    onChange: listeners.add,
    changeFeed: {
      knownAtMs: () => performance.now() - link.silentMs(),
      isLost: () => link.silentMs() > config.Proxy.max_staleness * 1000,
      lossCount: 0,
    },
  };
  const routes = createRouteTable({
    reservedPrefixes: [site.urls.hub],
    sessionIdAliases: site.jupyterHub.sessionIdAliases,
  });
  /** An answer may come from another hub than the feed, which heard of the change a moment later. */
  function tellTwice(subject: ChangeSubject): void {
    listeners.callAll(subject);
    setTimeout(() => listeners.callAll(subject), slowestHubMs).unref();
  }
  const remote = createRemoteBackend({ link, changes });
  const bindUrl = options.bindUrl ?? config.Hub.bind_url;
  const { clientAuthorities } = config;
  const certificates = createHeldCertificates();
  // Whether visitors are asked for theirs is settled before the first are there.
  certificates.hold([], { clientAuthorities });
  let ownSettings: string | undefined;
  const mirror = createRouteMirror({
    routes,
    tellChange: isLocal ? listeners.callAll : tellTwice,
    retire: () => void retire(),
    followBranding: site.followBranding,
    onNotices: ({ announcement, maintenance }) =>
      site.announced.follow(
        () => ({
          announcement: announcement && datedNotice(announcement),
          maintenance: maintenance && {
            ...datedNotice(maintenance),
            since: new Date(maintenance.since_ms),
          },
        }),
        changes.now,
      ),
    onCertificates: (given, revocationLists) =>
      certificates.hold(
        given.map(({ notAfter, ...rest }) => ({ ...rest, notAfter: new Date(notAfter) })),
        { clientAuthorities, revocationLists },
      ),
    onSnapshot({ now_ms: hubNowMs, settings: current }) {
      clockOffsetMs = hubNowMs - performance.now();
      const settings = sharedPart(current as GatewaySettings);
      ownSettings ??= settings;
      // A local one is replaced by its hub, and keeps its connections.
      if (ownSettings !== settings && !isLocal) ended.resolve('the hub has other settings now');
    },
  });

  // The hub decides for itself what it believes of a request, so it gets its own connections and rules.
  const hubOptions = { config: { ...proxyConfig, max_body_size: 0 }, log, identity };
  const hubConnections = createLiveConnections();
  // One with TLS proves itself.
  const verifyConnection =
    isLocal && hubUrl.protocol === 'http:' ? () => requireOwnHub(hubUrl) : undefined;
  const hubForwarder = building.use(
    createForwarder({
      ...hubOptions,
      config: { ...hubOptions.config, reconnect_timeout: hubReconnectSeconds },
      routes: createRouteTable(),
      verifyConnection,
      liveConnections: hubConnections,
      onClosed: () => {},
      answerError: (req, res, error) =>
        site.errorAnswers.respond(req, res, error, { isExpected: true }),
    }),
  );
  const hubWebSockets = building.use(
    createWebSocketForwarder({
      ...hubOptions,
      liveConnections: hubConnections,
      ...(verifyConnection && { httpAgent: new VerifyingAgent(verifyConnection) }),
    }),
  );
  const hub = createHubForwarding({
    link,
    route: createRoute(
      {
        prefix: '/',
        target: hubUrl.origin,
        access: 'public',
        owner: { kind: 'extra' },
        isHop: true,
      },
      0,
    ),
    forwarder: hubForwarder,
    webSockets: hubWebSockets,
    proof: createHopProof(gatewaySecrets),
    clientAddress: site.clientAddress,
    answers: site.errorAnswers,
  });

  const tracing = await openTracing({
    config,
    gatewaySecrets,
    instanceName: options.name,
    version,
    log,
    disposables: building,
  });
  const figures = new ForwardedFigures();
  const { gateway, streams, webSockets } = assembleGateway({
    ...site,
    config,
    gatewaySecrets,
    backend: {
      ...remote,
      routes,
      changes,
      // The feed tells of all of them.
      onSessionEnd: () => () => {},
      allowedScopes: mirror.allowedScopes,
    },
    count: (request) => figures.count(request),
    ways: {
      leaveUpgrade: hub.handleUpgrade,
      isOutdated: changes.changeFeed.isLost,
    },
    log,
    disposables: building,
  });
  link.deliverTo(mirror);
  let connections = (): number => 0;
  const reporter = createGatewayReporter({
    name: options.name,
    link,
    routes,
    webSockets,
    figures,
    droppedSpans: tracing?.droppedSpans ?? (() => 0),
    connections: () => connections(),
    log,
  });
  building.defer(async () => {
    // What was forwarded at last; the hub may be gone.
    await Promise.race([reporter.run(), delay(lastReportMs, undefined, { ref: false })]);
    await reporter[Symbol.asyncDispose]();
  });

  const server = createPublicServer({
    config,
    hubPath: site.urls.hub,
    certificates: new URL(bindUrl).protocol === 'https:' ? certificates : undefined,
    log,
    ...inTraces(tracing, {
      request(req, res) {
        if (!gateway.handleRequest(req, res)) hub.handleRequest(req, res);
      },
      upgrade: gateway.handleUpgrade,
    }),
  });
  connections = () => server.openConnections;
  const [ticketSecret] = gatewaySecrets;
  if (ticketSecret !== undefined) server.shareTickets(ticketSecret);
  const shutdownMs = config.Hub.shutdown_timeout * 1000;
  building.defer(() =>
    server.close(shutdownMs, {
      endStreams() {
        streams.endStreams();
        hubConnections.endStreams('shutting_down');
      },
      cutRest() {
        streams.cutRest();
        hubConnections.closeWhere(() => true, 'shutting_down');
      },
    }),
  );
  await listen(server.server, bindUrl, {
    key: options.bindUrl === undefined ? 'Hub.bind_url' : '--bind',
    socketMode: config.Hub.bind_socket_mode,
    isShared: true,
  });
  if (options.redirectBindUrl !== undefined) {
    const redirecting = createRedirectServer({ config, certificates, log });
    building.defer(() => redirecting.close(0));
    await listen(redirecting.server, options.redirectBindUrl, {
      key: '--redirect-bind',
      isShared: true,
    });
  }

  async function retire(): Promise<void> {
    log.info('gateway draining, another one takes over');
    await server.close(drainMs);
    ended.resolve('its last connection is over');
  }

  if (isLocal) {
    const lingerMs = config.Hub.gateway_linger * 1000;
    const lingering = setInterval(() => {
      if (link.silentMs() > lingerMs) ended.resolve('no hub came back');
    }, lingerPollMs);
    building.defer(() => clearInterval(lingering));
  }

  const built = building.move();
  return {
    server: server.server,
    publicUrl: config.publicUrl,
    ended: ended.promise,
    shutdownSeconds: config.Hub.shutdown_timeout,
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

function datedNotice<Published extends { readonly until_ms?: number | undefined }>({
  until_ms,
  ...notice
}: Published) {
  return { ...notice, ...(until_ms !== undefined && { until: new Date(until_ms) }) };
}
