import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { type InstanceLease, openInstanceLease } from '../cluster/instances/instance-lease.ts';
import type { Config } from '../platform/config/config.ts';
import { loadCookieSecrets } from '../platform/config/cookie-secret.ts';
import type { Secret } from '../platform/config/secret.ts';
import { deriveSecrets } from '../platform/crypto/derived-secrets.ts';
import { createMetrics, type Metrics } from '../platform/metrics/metrics.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import { type KeyvSpaces, openKeyv } from '../platform/store/keyv.ts';
import { openDatabase } from '../platform/store/open-database.ts';
import { describeInstance, instanceNameOf } from './describe-instance.ts';
import { createStores, keepHubId, type Stores } from './stores.ts';

/** What every part of the hub stands on. */
export interface Foundation {
  readonly config: Config;
  readonly log: Logger;
  readonly secrets: readonly Secret[];
  /** Keys of what the gateway seals and signs, derived: they open nothing of the hub's own. */
  readonly gatewaySecrets: readonly Secret[];
  readonly database: HubDatabase;
  readonly keyv: KeyvSpaces;
  readonly stores: Stores;
  readonly metrics: Metrics;
  /** The lease of this process among those on the database. */
  readonly instance: InstanceLease;
  /** Tells the processes of this hub from those of others; of the database, so it outlives a restart. */
  readonly hubId: string;
  /** What parts open goes here, and is closed in reverse. */
  readonly disposables: AsyncDisposableStack;
}

/**
 * Opens the database and the expiring state, and takes the lease of this process; all are closed with the
 * stack, which waits only briefly for what gives no answer after `stopping` was aborted.
 */
export async function openFoundation(
  { config, log, disposables }: Pick<Foundation, 'config' | 'log' | 'disposables'>,
  {
    version,
    machineId,
    stopping,
    brandingDigest,
  }: {
    readonly version: string;
    readonly machineId: string | undefined;
    readonly stopping: AbortSignal;
    /** Of the operator's own look. */
    readonly brandingDigest: string;
  },
): Promise<Foundation> {
  const { directory, Hub } = config;
  const secrets = await loadCookieSecrets({
    configured: Hub.cookie_secret,
    file: resolve(directory, Hub.cookie_secret_file),
  });
  const options = { directory, log, stopping };
  const maxStalenessMs = config.Proxy.max_staleness * 1000;
  const database = disposables.use(
    await openDatabase(Hub.database_url, {
      ...options,
      maxStalenessMs,
      instanceName: instanceNameOf(config),
    }),
  );
  const keyv = disposables.use(await openKeyv({ url: Hub.keyv_url, database, ...options }));
  const stores = createStores(database, secrets, log);
  const instance = disposables.use(
    await openInstanceLease({
      store: stores.instances,
      instance: describeInstance({ config, secrets, version, machineId, brandingDigest }),
      isShared: database.dialect === 'postgres',
      announce: () => database.announceChange({ kind: 'instances_changed' }),
      log,
      signal: stopping,
    }),
  );
  return {
    config,
    log,
    secrets,
    gatewaySecrets: deriveSecrets(secrets, 'gateway'),
    database,
    keyv,
    stores,
    metrics: createMetrics(),
    instance,
    hubId: await keepHubId(stores.settings),
    disposables,
  };
}
