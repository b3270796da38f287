import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { createHopProof } from '../cluster/instances/hop-proof.ts';
import { createReadiness } from '../cluster/instances/readiness.ts';
import { gatewayName, gatewayTokenVariable } from '../entrances/cli/gateway-command.ts';
import { createAnnouncements } from '../entrances/pages/announcements.ts';
import { createNotReadyRenderer } from '../entrances/pages/services/not-ready-renderer.ts';
import { ownGateway } from '../identity/oauth/tokens/token-verifier.ts';
import type { Caller } from '../identity/rbac/access-check.ts';
import { listen } from '../platform/http/server/listener.ts';
import { createChangeAwareCache, watchChanges } from '../platform/store/change-aware-cache.ts';
import { createExchangeGuardCode } from '../traffic/gateway/direct-hub-api.ts';
import { createGatewayFeed } from '../traffic/gateway/feed.ts';
import { createGatewayProcessStore } from '../traffic/gateway/gateway-process-store.ts';
import { createGatewayReports } from '../traffic/gateway/gateway-report.ts';
import { gatewaySettings, gatewayTokens } from '../traffic/gateway/gateway-settings.ts';
import { createHopForwarder } from '../traffic/gateway/hop-forwarder.ts';
import { createLocalGateways } from '../traffic/gateway/local-gateways.ts';
import { createFindVisitor } from '../traffic/gateway/login-access.ts';
import { createRouteAccess } from '../traffic/gateway/route-access.ts';
import { createStartGatewayProcess } from '../traffic/gateway/start-gateway-process.ts';
import { assembleGateway, type GatewayBackend } from './assemble-gateway.ts';
import { grow } from './grow.ts';
import type { Working } from './servers.ts';

const cachedUserIds = 10_000;
/** How long gateways have to hear that the hub stops before it takes no more connections. */
const farewellMs = 200;
/** How much longer than their requests in flight gateways may take to end. */
const endReserveMs = 5_000;

/** The record with what passes requests on. */
export type Served = Awaited<ReturnType<typeof openTraffic>>;

export const openTraffic = (working: Working) =>
  grow(working)
    .with(openGateway)
    .with(openAnnouncements)
    .with(openGateways)
    .with((hub) => ({ readiness: createReadiness(hub) })).grown;

/** The gateway within the hub, and what gateway processes ask it for. */
function openGateway(hub: Working) {
  const { config, database, users, authorizer, logins, revalidation } = hub;
  const access = createRouteAccess({
    ...hub,
    tokens: hub.tokenVerifier,
    activity: hub.activityLog,
  });
  const userIds = createChangeAwareCache<string>({
    changes: watchChanges(database),
    max: cachedUserIds,
  });
  const backend: GatewayBackend = {
    routes: hub.routes,
    changes: database,
    access,
    findVisitor: createFindVisitor({ logins, revalidation, authorizer }),
    userOfSession: async (sessionId) => (await logins.find(sessionId))?.user.name,
    onSessionEnd: logins.onEnd,
    groupNamesOf: authorizer.groupNamesOf,
    async infoOf(userName) {
      const userId = await userIds.getOrLoad(
        userName,
        async () => (await users.findByName(userName))?.id,
      );
      if (userId === undefined) return {};
      const { displayName, email, isEmailVerified } = await hub.userInfo.of(userId);
      return { displayName, verifiedEmail: isEmailVerified ? email : undefined };
    },
    exchangeCode: createExchangeGuardCode(hub),
    allowedScopes: hub.clients.allowedScopes,
  };
  const assembled = assembleGateway({
    ...hub,
    config,
    backend,
    count: hub.metrics.countForwarded,
    ways: { renderNotReadyPage: createNotReadyRenderer(hub, hub.registry) },
    createHops: (parts) =>
      createHopForwarder({
        ...parts,
        proof: hub.hopProof,
        identity: hub.identity,
        findInstance: hub.directory.addressOf,
      }),
  });
  return { ...assembled, access, backend };
}

/** What the operator tells all users; error pages have it as it was known last. */
async function openAnnouncements(hub: Working) {
  const { config, database, now, log, disposables } = hub;
  const announcements = createAnnouncements({
    ...hub,
    hubPath: hub.urls.hub,
    config: config.Hub,
  });
  disposables.defer(
    database.onChange(() => {
      announcements
        .refresh()
        .catch((error: unknown) => log.debug({ err: error }, 'announcements cannot be read'));
    }, ['notices_changed', 'all']),
  );
  await announcements.refresh();
  hub.announced.follow(announcements.everywhere, now);
  return { announcements };
}

/** The hub's side of the gateway processes. */
function openGateways(
  hub: Working & ReturnType<typeof openGateway> & Awaited<ReturnType<typeof openAnnouncements>>,
) {
  const { config, secrets, database, instance, backend, disposables, log } = hub;
  const { Hub } = config;
  const { settings, digest } = gatewaySettings(hub);
  const feed = disposables.use(
    createGatewayFeed({
      ...backend,
      notices: hub.announcements,
      settings,
      settingsDigest: digest,
      branding: hub.publishedBranding,
      certificates: hub.certificates,
    }),
  );
  const [token] = gatewayTokens(secrets);
  if (token === undefined) throw new TypeError('a hub has at least one key');
  const local = disposables.use(
    createLocalGateways({
      count: Hub.gateways,
      startProcess: createStartGatewayProcess({
        ...hub,
        token,
        program: hub.program ?? [],
        tokenVariable: gatewayTokenVariable,
        identityVariables: hub.gatewayIdentity,
      }),
      nameOf: ({ pid }) => gatewayName(pid),
      version: hub.version,
      feed,
      store: createGatewayProcessStore(database, instance.name),
      endGraceMs: Hub.shutdown_timeout * 1000 + endReserveMs,
      log,
    }),
  );
  let leavesThem = Hub.gateway_linger > 0;

  const reports = createGatewayReports({
    routes: backend.routes,
    countAll: hub.metrics.addForwarded,
    now: hub.now,
  });

  return {
    /** The hub's side of the gateway processes. */
    gateways: {
      openWebSockets: reports.openWebSockets,
      droppedSpans: reports.droppedSpans,
      /** Those that follow this hub, and what any told it. */
      list: () => ({
        following: feed
          .following()
          .map(({ name, version, isLocal }) => ({ name, version, isLocal })),
        reported: reports.list(),
      }),
      hopProof: createHopProof(hub.gatewaySecrets),
      /** Throws StartupError when something else than a gateway of this hub listens where they will. */
      async requirePort(): Promise<void> {
        if (Hub.gateways === 0 || (await local.hasLeftovers())) return;
        const probe = createServer();
        await listen(probe, Hub.bind_url, { key: 'Hub.bind_url' });
        await new Promise((resolve) => probe.close(resolve));
      },
      /** Lets gateways follow, and starts the hub's own. */
      async open(signal: AbortSignal | undefined): Promise<void> {
        feed.open();
        await local.start(signal);
      },
      /** Tells them how pages look now. */
      publishBranding: () => feed.publishBranding(),
      /** Makes them end with the hub. */
      endThem(): void {
        leavesThem = false;
      },
      /** Ends the feeds, so that gateways hold back what is for the hub until the next one is there. */
      async close(): Promise<void> {
        // They take no more connections while the hub still answers what is under way.
        if (!leavesThem) await local.end();
        const hadGateways = feed.following().length > 0;
        feed.close();
        if (hadGateways) await delay(farewellMs);
      },
    },
    gatewayFeed: feed,
    questionedHub: { ...backend, authorizer: hub.authorizer, reports },
    isOwnGateway: (caller: Caller) => caller === ownGateway,
  };
}
