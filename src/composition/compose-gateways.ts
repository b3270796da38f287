import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { createHopProof } from '../cluster/instances/hop-proof.ts';
import { gatewayName, gatewayTokenVariable } from '../entrances/cli/gateway-command.ts';
import type { Announcements } from '../entrances/pages/announcements.ts';
import { ownGateway } from '../identity/oauth/tokens/token-verifier.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { Caller } from '../identity/rbac/caller.ts';
import type { CurrentBranding } from '../platform/branding/branding.ts';
import { listen } from '../platform/http/server/listener.ts';
import { createGatewayFeed } from '../traffic/gateway/feed.ts';
import { createGatewayProcessStore } from '../traffic/gateway/gateway-process-store.ts';
import { createGatewayReports } from '../traffic/gateway/gateway-report.ts';
import { createLocalGateways } from '../traffic/gateway/local-gateways.ts';
import { createStartGatewayProcess } from '../traffic/gateway/start-gateway-process.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { Foundation } from './foundation.ts';
import { gatewaySettings, gatewayTokens } from './gateway-settings.ts';

/** The hub's side of the gateway processes. */
export type ComposedGateways = ReturnType<typeof composeGateways>;

/** How long gateways have to hear that the hub stops before it takes no more connections. */
const farewellMs = 200;
/** How much longer than their requests in flight gateways may take to end. */
const endReserveMs = 5_000;

export function composeGateways(
  foundation: Foundation,
  deps: {
    readonly gateway: ComposedGateway;
    readonly authorizer: Pick<Authorizer, 'membership'>;
    readonly announcements: Pick<Announcements, 'everywhere' | 'onChange'>;
    readonly version: string;
    readonly branding: CurrentBranding;
    /** The hub's own environment. */
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly program: readonly string[];
  },
) {
  const { config, secrets, database, instance, log } = foundation;
  const { Hub } = config;
  const { backend } = deps.gateway;
  const { settings, digest } = gatewaySettings(foundation, deps.version);
  const feed = foundation.disposables.use(
    createGatewayFeed({
      routes: backend.routes,
      changes: backend.changes,
      onSessionEnd: backend.onSessionEnd,
      allowedScopes: backend.allowedScopes,
      notices: deps.announcements,
      settings,
      settingsDigest: digest,
      branding: deps.branding,
    }),
  );
  const [token] = gatewayTokens(secrets);
  if (token === undefined) throw new TypeError('a hub has at least one key');
  const local = foundation.disposables.use(
    createLocalGateways({
      count: Hub.gateways,
      startProcess: createStartGatewayProcess({
        config,
        environment: deps.environment,
        token,
        program: deps.program,
        tokenVariable: gatewayTokenVariable,
      }),
      nameOf: ({ pid }) => gatewayName(pid),
      version: deps.version,
      feed,
      store: createGatewayProcessStore(database, instance.name),
      endGraceMs: Hub.shutdown_timeout * 1000 + endReserveMs,
      log,
    }),
  );
  let leavesThem = Hub.gateway_linger > 0;

  const reports = createGatewayReports({
    routes: backend.routes,
    countAll: foundation.metrics.addForwarded,
    now: database.now,
  });

  return {
    openWebSockets: reports.openWebSockets,
    /** Those that follow this hub, and what any told it. */
    list: () => ({
      following: feed.following().map(({ name, version, isLocal }) => ({ name, version, isLocal })),
      reported: reports.list(),
    }),
    hopProof: createHopProof(foundation.gatewaySecrets),
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
    api: {
      gatewayFeed: feed,
      questionedHub: { ...backend, authorizer: deps.authorizer, reports },
      isOwnGateway: (caller: Caller) => caller === ownGateway,
    },
  };
}
