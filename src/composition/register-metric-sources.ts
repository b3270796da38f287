import { hasBegun } from '../cluster/notices/notice-store.ts';
import { signingAlgorithms } from '../identity/oauth/keys/signing-key-store.ts';
import { keyStates } from '../identity/oauth/keys/signing-keys.ts';
import { findFailure } from '../platform/acme/acme-store.ts';
import { findLastBackup } from '../platform/store/last-backup.ts';
import { serviceStates } from '../workloads/services/service-status.ts';
import type { Served } from './traffic.ts';

/** Registers what the metrics read from the running hub at each scrape. */
export function registerMetricSources(hub: Served): void {
  const { metrics, database, instance, readiness, registry, gateways } = hub;
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
      for (const { state } of hub.lifecycle.units()) totals[state] = (totals[state] ?? 0) + 1;
      return totals;
    },
    serversTogether: hub.serverUsage.together,
    instance: { name: instance.name, version: hub.version },
    instancesByState() {
      const instances = hub.directory.list();
      const up = instances.filter(({ isLive }) => isLive).length;
      return { up, down: instances.length - up };
    },
    async isInMaintenance() {
      const { database: problem } = await readiness.check();
      if (problem !== undefined) return false;
      return hasBegun((await hub.notices.current()).maintenance, hub.database.now());
    },
    async users() {
      const { database } = await readiness.check();
      return database === undefined ? await hub.users.count() : undefined;
    },
    async storagesUp() {
      const { database, store } = await readiness.check();
      return { database: database === undefined, store: store === undefined };
    },
    async lastBackup() {
      const { database: problem } = await readiness.check();
      return problem === undefined ? await findLastBackup(hub.settings) : undefined;
    },
    async acmeFailure() {
      const { database: problem } = await readiness.check();
      return problem === undefined ? await findFailure(hub.settings) : undefined;
    },
    signingKeyStates: { algorithms: signingAlgorithms, states: keyStates },
    async signingKeys() {
      const { database: problem } = await readiness.check();
      return problem === undefined ? await hub.signingKeys.list() : undefined;
    },
    certificates() {
      const files = new Map(
        hub.certificateFiles
          ?.states()
          .map(({ certificate, isCurrent }) => [certificate, isCurrent] as const),
      );
      return (hub.certificates?.certificates() ?? []).map((certificate) => ({
        name: certificate.origin,
        notAfter: certificate.notAfter,
        isCurrent: files.get(certificate) ?? true,
      }));
    },
    openWebSockets: () => hub.webSockets.openWebSockets + gateways.openWebSockets(),
    gateways: () => gateways.list().following.length,
    droppedLogLines: hub.droppedLogLines,
    droppedSpans: () => (hub.tracing?.droppedSpans() ?? 0) + gateways.droppedSpans(),
    changeFeed: () => ({
      ageSeconds: (performance.now() - database.changeFeed.knownAtMs()) / 1000,
      losses: database.changeFeed.lossCount,
    }),
  });
}
