import type { Metrics } from '../metrics/metrics.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import { serviceStates } from '../services/service-status.ts';
import type { composeGateway } from './compose-gateway.ts';
import type { ComposedServers } from './compose-servers.ts';
import type { Stores } from './stores.ts';

/** Registers what the metrics read from the running hub at each scrape. */
export function registerMetricSources(deps: {
  readonly metrics: Metrics;
  readonly registry: Pick<ServiceRegistry, 'statuses'>;
  readonly server: Pick<ComposedServers, 'lifecycle'>;
  readonly stores: Pick<Stores, 'users'>;
  readonly webSockets: ReturnType<typeof composeGateway>['webSockets'];
  readonly forwarder: ReturnType<typeof composeGateway>['forwarder'];
  readonly droppedLogLines: () => number;
}): void {
  const { metrics, registry, server, stores, webSockets, forwarder } = deps;
  metrics.observe({
    serviceStates,
    services: () =>
      registry.statuses().map((status) => ({
        name: status.name,
        isUp: status.isReady,
        state: status.state,
        restarts: status.restarts,
        cpuCores: status.usage?.cpuCores,
        memoryBytes: status.usage?.memoryBytes,
        uptimeSeconds: status.startedAt && (Date.now() - status.startedAt.getTime()) / 1000,
      })),
    serversByState() {
      const totals: Record<string, number> = { stopped: 0, starting: 0, running: 0, stopping: 0 };
      for (const { state } of server.lifecycle.units()) totals[state] = (totals[state] ?? 0) + 1;
      return totals;
    },
    users: () => stores.users.count(),
    openWebSockets: () => webSockets.openWebSockets,
    droppedLogLines: deps.droppedLogLines,
    forwardedRequests: () => forwarder.forwardedRequests(),
  });
}
