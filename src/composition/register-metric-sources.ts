import { monotonicMs } from '../platform/concurrency/monotonic-clock.ts';
import { serviceStates } from '../workloads/services/service-status.ts';
import type { ComposedGateway } from './compose-gateway.ts';
import type { ComposedGateways } from './compose-gateways.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Readiness } from './readiness.ts';
import type { Working } from './servers.ts';

/** Registers what the metrics read from the running hub at each scrape. */
export function registerMetricSources(
  { metrics, stores, database, instance }: Foundation,
  deps: {
    readonly services: Identity;
    readonly instances: Identity;
    readonly version: string;
    readonly servers: Working;
    readonly loads: Pick<Working, 'serversTogether'>;
    readonly gateway: ComposedGateway;
    readonly gateways: Pick<ComposedGateways, 'openWebSockets' | 'list'>;
    readonly readiness: Readiness;
    readonly droppedLogLines: () => number;
  },
): void {
  const { readiness } = deps;
  const { registry } = deps.services;
  const { lifecycle } = deps.servers;
  const { webSockets } = deps.gateway;
  metrics.observe({
    serviceStates,
    services: () =>
      // Of what runs elsewhere its instance tells; of what is stopped by hand, each does.
      registry
        .statuses()
        .filter(({ isHere, instance, stopped }) => isHere || (stopped && instance === undefined))
        .map((status) => ({
          name: status.name,
          isUp: status.isReady,
          state: status.state,
          restarts: status.restarts,
          cpuCores: status.usage?.cpuCores,
          memoryBytes: status.usage?.memoryBytes,
          uptimeSeconds: status.uptimeMs && status.uptimeMs / 1000,
        })),
    serversByState() {
      const totals: Record<string, number> = { stopped: 0, starting: 0, running: 0, stopping: 0 };
      for (const { state } of lifecycle.units()) totals[state] = (totals[state] ?? 0) + 1;
      return totals;
    },
    serversTogether: deps.loads.serversTogether,
    instance: { name: instance.name, version: deps.version },
    instancesByState() {
      const instances = deps.instances.directory.list();
      const up = instances.filter(({ isLive }) => isLive).length;
      return { up, down: instances.length - up };
    },
    async isInMaintenance() {
      const { database: problem } = await readiness.check();
      if (problem !== undefined) return false;
      return (await stores.notices.current()).maintenance !== undefined;
    },
    async users() {
      const { database } = await readiness.check();
      return database === undefined ? await stores.users.count() : undefined;
    },
    async storagesUp() {
      const { database, store } = await readiness.check();
      return { database: database === undefined, store: store === undefined };
    },
    openWebSockets: () => webSockets.openWebSockets + deps.gateways.openWebSockets(),
    gateways: () => deps.gateways.list().following.length,
    droppedLogLines: deps.droppedLogLines,
    changeFeed: () => ({
      ageSeconds: (monotonicMs() - database.changeFeed.knownAtMs()) / 1000,
      losses: database.changeFeed.lossCount,
    }),
  });
}
