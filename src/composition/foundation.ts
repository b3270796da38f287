import type { Server } from 'node:http';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { describeInstance, instanceNameOf } from '../cluster/instances/describe-instance.ts';
import { openInstanceLease } from '../cluster/instances/instance-lease.ts';
import type { Argon2Cost } from '../identity/authentication/password-hash.ts';
import { createSigningKeys } from '../identity/oauth/keys/signing-keys.ts';
import type { SiteBranding } from '../platform/branding/branding.ts';
import type { Config } from '../platform/config/config.ts';
import { loadCookieSecrets } from '../platform/config/cookie-secret.ts';
import { deriveSecrets } from '../platform/crypto/derived-secrets.ts';
import type { CertificateFiles } from '../platform/http/tls/certificate-files.ts';
import type {
  CertificateSources,
  HeldCertificates,
} from '../platform/http/tls/certificate-source.ts';
import { createMetrics } from '../platform/metrics/metrics.ts';
import { openKeyv } from '../platform/store/keyv.ts';
import { openDatabase } from '../platform/store/open-database.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import { openAcme } from './acme.ts';
import { grow } from './grow.ts';
import { openInternalTls } from './internal-tls.ts';
import type { Site } from './site.ts';
import type { StopRequest } from './stop-request.ts';
import { createStores, keepHubId } from './stores.ts';
import { openTracing } from './tracing.ts';

export interface HubOptions {
  readonly config: Config;
  readonly plugins: PreparedPlugins;
  readonly branding: SiteBranding;
  readonly version: string;
  readonly nodeVersion: string;
  /** The hub's own environment: children get an allow-list of it. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly log: Logger;
  /** Lines of the log that were lost so far. */
  readonly droppedLogLines: () => number;
  /** Command line of this program without a command, by which gateways are started. */
  readonly program?: readonly string[];
  /** Stands for the machine's own id, as if the hub ran on another one. */
  readonly machineId?: string;
  /** What hashing a password costs, where it must not be what `hub start` has it cost. */
  readonly passwordCost?: Argon2Cost;
  /** Ends the start when it is aborted; a hub that is there is disposed of instead. */
  readonly signal?: AbortSignal;
}

/** What is there before the hub touches anything. */
export type Beginning = Omit<HubOptions, 'branding'> &
  Site & {
    readonly listeners: { readonly publicServer: Server; readonly internalServer: Server };
    /** Of `Hub.bind_url`; undefined where that is no https:// address. */
    readonly certificates?: CertificateSources;
    readonly certificateFiles?: CertificateFiles;
    /** Of an https:// `Hub.hub_bind_url`. */
    readonly internalCertificates?: HeldCertificates;
    readonly stop: StopRequest;
    /** Of the operator's own look at the start. */
    readonly brandingDigest: string;
    /** What parts open goes here, and is closed in reverse. */
    readonly disposables: AsyncDisposableStack;
    /** After it what gives no answer is waited for only briefly. */
    readonly stopping: AbortSignal;
  };

/** What every part of the hub stands on: one record, to which each adds its services by name. */
export type Foundation = Awaited<ReturnType<typeof openFoundation>>;

/** Opens the database and the expiring state, and takes the lease of this process; all are closed with the stack. */
export const openFoundation = (beginning: Beginning) =>
  grow(beginning)
    .with(async ({ config, log, disposables, stopping }) => {
      const { directory, Hub } = config;
      const secrets = await loadCookieSecrets({
        configured: Hub.cookie_secret,
        file: resolve(directory, Hub.cookie_secret_file),
      });
      const options = { directory, log, stopping };
      const database = disposables.use(
        await openDatabase(Hub.database_url, {
          ...options,
          maxStalenessMs: config.Proxy.max_staleness * 1000,
          instanceName: instanceNameOf(config),
        }),
      );
      const keyv = disposables.use(await openKeyv({ url: Hub.keyv_url, database, ...options }));
      return {
        secrets,
        /** Keys of what the gateway seals and signs, derived: they open nothing of the hub's own. */
        gatewaySecrets: deriveSecrets(secrets, 'gateway'),
        database,
        isShared: database.dialect === 'postgres',
        now: database.now,
        audit: database.audit,
        keyv,
        metrics: createMetrics(),
        publicUrl: config.publicUrl,
        basePath: config.basePath,
      };
    })
    .with(({ database, secrets, log }) => createStores(database, secrets, log))
    .with(openAcme)
    .with(openInternalTls)
    .with(async (hub) => ({
      tracing: await openTracing({ ...hub, instanceName: instanceNameOf(hub.config) }),
    }))
    .with((hub) => ({
      signingKeys: createSigningKeys({
        ...hub,
        store: hub.signingKeyStore,
        days: hub.config.Hub.signing_key_days,
      }),
    }))
    .with(async (hub) => ({
      /** The lease of this process among those on the database. */
      instance: hub.disposables.use(
        await openInstanceLease({
          store: hub.instanceStore,
          instance: describeInstance(hub),
          isShared: hub.isShared,
          announce: () => hub.database.announceChange({ kind: 'instances_changed' }),
          log: hub.log,
          signal: hub.stopping,
        }),
      ),
      hubId: await keepHubId(hub.settings),
    })).grown;
