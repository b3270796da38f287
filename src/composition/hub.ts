import type { Server } from 'node:http';
import type { ReloadReport } from '../cluster/instances/reload-operation.ts';
import { watchSettings } from '../cluster/instances/settings-difference.ts';
import type { Entrance } from '../entrances/pages/forms/binding.ts';
import { takeInstanceLocks } from '../platform/store/instance-locks.ts';
import { openAccounts } from './accounts.ts';
import { createApp } from './app.ts';
import { recordLife, watchAudit } from './audit.ts';
import { startBackups } from './backups.ts';
import { openBrowser } from './browser.ts';
import { openCertificates } from './certificates.ts';
import { type HubOptions, openFoundation } from './foundation.ts';
import { grow } from './grow.ts';
import { openIdentity } from './identity.ts';
import { openListeners } from './open-listeners.ts';
import { openProxyApi } from './open-proxy-api.ts';
import { openOperations } from './operations.ts';
import { startPurging } from './purge.ts';
import { registerMetricSources } from './register-metric-sources.ts';
import { createReload, onReload, type ReloadedConfig, type ReloadListeners } from './reload.ts';
import { startResealing } from './resealing.ts';
import { openWork } from './servers.ts';
import { openSite } from './site.ts';
import { createStopRequest } from './stop-request.ts';
import { openTraffic } from './traffic.ts';

/** A running hub. Disposing of it stops everything it started, in reverse. */
export interface Hub extends AsyncDisposable {
  readonly publicServer: Server;
  readonly internalServer: Server;
  readonly publicUrl: URL;
  /** The one-time link for the first administrator, while there is none. */
  readonly setUpUrl: string | undefined;
  /** Pages and forms by which operations are performed, beside the API. */
  readonly entrances: readonly Entrance[];
  /** Whether a service has neither become ready nor failed for the first time. */
  isServiceStarting(): boolean;
  /** Resolves when the hub is asked over the API to stop. */
  readonly stopRequested: Promise<void>;
  /** Makes its gateway processes end with it; otherwise they wait for the next hub. */
  endGateways(): void;
  /** Changes to a new, already checked configuration, and logs and tells the difference. */
  reload(reloaded: ReloadedConfig): Promise<ReloadReport>;
  /** Makes the other instances read their configuration files again. */
  requestReload(): Promise<void>;
  /** Calls back when another instance asks for that, or an operator of this one. */
  onReloadRequested(listeners: ReloadListeners): void;
}

/**
 * Builds a hub. Its addresses and locks come first: a second hub that was started by mistake fails
 * there, before it looks at what earlier runs left. Throws with nothing left running, the reason of
 * `signal` when that is aborted.
 */
export async function createHub(options: HubOptions): Promise<Hub> {
  await using building = new AsyncDisposableStack();
  const { branding, ...rest } = options;
  const { config, environment, version, log, signal } = options;

  const site = await openSite({ config, log }, version);
  site.setBranding(branding);
  const secured = await openCertificates({ config, log, disposables: building });
  const listeners = await openListeners(
    { config, environment, log, disposables: building, ...secured },
    site,
  );
  await takeInstanceLocks(config, building);
  signal?.throwIfAborted();
  const ending = new AbortController();
  const foundation = await openFoundation({
    ...rest,
    ...site,
    listeners,
    ...secured,
    stop: createStopRequest({ stopsServers: config.Hub.cleanup_servers }),
    brandingDigest: branding.digest,
    disposables: building,
    stopping: AbortSignal.any([ending.signal, ...(signal === undefined ? [] : [signal])]),
  });
  watchAudit(foundation);
  await foundation.signingKeys.reportLost();
  building.use(startPurging(foundation));
  building.use(startResealing(foundation));
  signal?.throwIfAborted();
  let isReady = false;
  const working = await openWork(
    await openIdentity(foundation),
    // A start that fails or is ended leaves alone what runs.
    () => isReady && foundation.stop.stopsServers(),
  );
  const served = await openTraffic(working);
  served.tellGateways(served.gateways.list);
  await served.gateways.requirePort();
  registerMetricSources(served);
  const visited = await openBrowser(await openAccounts(served));
  const hub = await grow(visited).with(openOperations).grown;
  createApp(hub);

  const { database, gateways, lifecycle, registry } = hub;
  signal?.throwIfAborted();
  const { restored, gone } = await lifecycle.restore();
  if (restored + gone > 0) log.info({ restored, gone }, 'servers of earlier run restored');
  await registry.watchExternal();
  signal?.throwIfAborted();
  listeners.serve(hub);
  await openProxyApi(hub);
  void hub.checkOwnAddress();
  if (hub.isShared) building.use(watchSettings(hub));
  await registry.start(signal);
  signal?.throwIfAborted();
  void hub.scheduledStarts.run();
  const setUpUrl = await hub.firstAdministrator.issueLink();

  // After the starts: pages follow these to their end.
  building.defer(() => hub.liveCallers[Symbol.dispose]());
  // Before requests in flight are waited for: some of them follow a start to its end.
  building.defer(() => lifecycle.close());
  building.defer(() => ending.abort());
  building.defer(() => gateways.close());

  await gateways.open(signal);
  building.use(await recordLife(hub));
  const backups = startBackups(hub);
  if (backups !== undefined) building.use(backups);
  const built = building.move();
  isReady = true;
  return {
    publicServer: listeners.publicServer,
    internalServer: listeners.internalServer,
    publicUrl: hub.publicUrl,
    setUpUrl: setUpUrl?.href,
    entrances: hub.entrances,
    isServiceStarting: () =>
      registry.statuses().some(({ state, restarts }) => state === 'starting' && restarts === 0),
    stopRequested: hub.stop.requested,
    endGateways: () => gateways.endThem(),
    reload: createReload(hub),
    requestReload: () => database.requestReload(hub.instance.id),
    onReloadRequested: (listeners) => onReload(listeners, hub),
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}
