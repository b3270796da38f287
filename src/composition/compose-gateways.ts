import { setTimeout as delay } from 'node:timers/promises';
import { createGatewayFeed } from '../gateway/feed.ts';
import { createHopProof } from '../instances/hop-proof.ts';
import { ownGateway } from '../oauth/tokens/token-verifier.ts';
import type { Caller } from '../rbac/caller.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { Foundation } from './foundation.ts';
import { gatewaySettings } from './gateway-settings.ts';

/** The hub's side of the gateway processes. */
export type ComposedGateways = ReturnType<typeof composeGateways>;

/** How long gateways have to hear that the hub stops before it takes no more connections. */
const farewellMs = 200;

export function composeGateways(
  foundation: Foundation,
  deps: { readonly gateway: ComposedGateway; readonly version: string },
) {
  const { backend } = deps.gateway;
  const { settings, digest } = gatewaySettings(foundation, deps.version);
  const feed = foundation.disposables.use(
    createGatewayFeed({
      routes: backend.routes,
      changes: backend.changes,
      onSessionEnd: backend.onSessionEnd,
      allowedScopes: backend.allowedScopes,
      settings,
      settingsDigest: digest,
    }),
  );
  return {
    hopProof: createHopProof(foundation.gatewaySecrets),
    open: () => feed.open(),
    /** Ends the feeds, so that gateways hold back what is for the hub until the next one is there. */
    async close(): Promise<void> {
      const hadGateways = feed.following().length > 0;
      feed.close();
      if (hadGateways) await delay(farewellMs);
    },
    api: {
      gatewayFeed: feed,
      gatewayAnswers: backend,
      isOwnGateway: (caller: Caller) => caller === ownGateway,
    },
  };
}
