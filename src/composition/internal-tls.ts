import { X509Certificate } from 'node:crypto';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { getegid } from 'node:process';
import type { Logger } from 'pino';
import { createPeriodic } from '../platform/concurrency/periodic.ts';
import type { Config } from '../platform/config/config.ts';
import { isWildcard } from '../platform/config/contradictions.ts';
import type { Secret } from '../platform/config/secret.ts';
import { findOperator } from '../platform/files/movable-path.ts';
import type { HeldCertificates } from '../platform/http/tls/certificate-source.ts';
import { identityVariables, writeIdentity } from '../platform/internal-tls/identity-files.ts';
import {
  createInternalAuthority,
  type TlsIdentity,
} from '../platform/internal-tls/internal-authority.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import type { Stores } from './stores.ts';

/** How often the hub has itself issued another certificate, and hears of authorities to come. */
const renewMs = 12 * 3_600_000;

/** Has the internal address show a certificate of the hub's own authority, and ask for one (`Hub.internal_ssl`). */
export async function openInternalTls(
  hub: Pick<Stores, 'settings'> & {
    readonly config: Config;
    readonly internalCertificates?: HeldCertificates;
    readonly secrets: readonly Secret[];
    readonly database: HubDatabase;
    readonly log: Logger;
    readonly disposables: AsyncDisposableStack;
  },
) {
  const { config, internalCertificates, log } = hub;
  if (internalCertificates === undefined) {
    return { identity: () => undefined, gatewayIdentity: undefined };
  }
  const held = internalCertificates;
  const authority = createInternalAuthority({
    settings: hub.settings,
    secrets: hub.secrets,
    now: hub.database.now,
    log,
  });
  const folder = resolve(config.directory, config.Hub.internal_certs_location);
  // Volumes of pods belong to the group of their processes.
  const groups = getegid === undefined ? [] : [getegid()];
  const trusted = { users: await findOperator(join(config.directory, 'hub.config.json')), groups };
  let identity: TlsIdentity | undefined;

  async function renew(): Promise<void> {
    const hosts = hostsOf(config);
    const own = await authority.issue('hub', hosts);
    const ofGateway = await authority.issue('gateway');
    identity = own;
    held.hold([served(own, hosts)], { clientAuthorities: own.ca });
    await writeIdentity(folder, { name: 'gateway', ...ofGateway }, trusted);
  }

  await renew();
  hub.disposables.use(
    createPeriodic({
      intervalMs: renewMs,
      work: renew,
      onError: (error) => log.error({ err: error }, 'internal certificates could not be renewed'),
    }),
  );
  return {
    /** What this process shows others of the hub, and checks them by. */
    identity: () => identity,
    /** Where its gateways find theirs. */
    gatewayIdentity: identityVariables(folder, 'gateway'),
  };
}

function served({ cert: certificate, key }: TlsIdentity, names: readonly string[]) {
  const origin = 'Hub.internal_ssl';
  return {
    certificate,
    key,
    names,
    origin,
    notAfter: new X509Certificate(certificate).validToDate,
  };
}

/** By what names and addresses other processes may come. */
function hostsOf({ Hub, connectUrl }: Config): string[] {
  const urls = [Hub.hub_bind_url, connectUrl.href, Hub.instance_url ?? []].flat();
  const hosts = urls.map((url) => new URL(url).hostname).filter((host) => !isWildcard(host));
  const own = ['localhost', '127.0.0.1', '::1', hostname()];
  const all = [...own, ...hosts, ...Hub.trusted_alt_names];
  return [...new Set(all.map((host) => host.replace(/^\[|\]$/g, '').toLowerCase()))];
}
