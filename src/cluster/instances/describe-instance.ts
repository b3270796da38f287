import { hash, randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { pid } from 'node:process';
import { socketPathOf } from '../../platform/config/bind-address.ts';
import type { Config } from '../../platform/config/config.ts';
import { isWildcard } from '../../platform/config/contradictions.ts';
import type { Secret } from '../../platform/config/secret.ts';
import { createKeyedHash } from '../../platform/crypto/hash.ts';
import { identifyProcess } from '../../platform/process-table/process-table.ts';
import { readMachineId } from '../../spawning/processes/machine-id.ts';
import type { InstanceDescription } from './instance.ts';

/** Settings of `Hub` in which the instances of one hub may differ. */
const ownSettings = [
  'audit_file',
  // What stands in the files is compared, not where they are.
  'custom_css',
  'favicon',
  'logo',
  'logo_dark',
  'templates_dir',
  'bind_url',
  'bind_socket_mode',
  // Whatever host or name stands in it: what is compared is in that database.
  'database_url',
  'hub_bind_url',
  'instance_name',
  'instance_url',
  'internal_certs_location',
  'trusted_alt_names',
  'log_dir',
  'log_level',
  'log_format',
  'log_time_format',
  'log_level_format',
  'plugins_dir',
  'shutdown_timeout',
  'trusted_proxies',
  'trust_forwarded_host',
];

/** Name of this instance, for people. */
export function instanceNameOf({ Hub }: Config): string {
  return Hub.instance_name ?? hostname();
}

/** What this process says of itself to the others on its database. */
export function describeInstance(options: {
  readonly config: Config;
  readonly secrets: readonly Secret[];
  readonly version: string;
  /** Undefined: as the operating system says. */
  readonly machineId?: string | undefined;
  readonly brandingDigest: string;
}): InstanceDescription {
  const { config, secrets, version, machineId = readMachineId() } = options;
  const name = instanceNameOf(config);
  const { instance_url: url } = config.Hub;
  return {
    id: randomUUID(),
    name,
    url: url === undefined ? ownUrl(config.Hub.hub_bind_url) : new URL(url).origin,
    host: hostname(),
    machineId,
    process: identifyProcess(pid) ?? { pid, startTime: 'unknown' },
    version,
    basePath: config.basePath,
    keyDigests: secrets.map((secret) =>
      createKeyedHash([secret], 'instance').sign('cookie_secret'),
    ),
    settingsDigest: digestSettings(config, options.brandingDigest),
  };
}

/** Where the others on this machine reach `Hub.hub_bind_url`, and those elsewhere if it is no loopback address. */
function ownUrl(bindUrl: string): string | undefined {
  if (socketPathOf(bindUrl) !== undefined) return undefined;
  const url = new URL(bindUrl);
  if (isWildcard(url.hostname)) url.hostname = url.hostname === '[::]' ? '[::1]' : '127.0.0.1';
  return url.origin;
}

/** The same for instances whose settings say the same; secrets do not count. */
export function digestSettings(config: Config, brandingDigest: string): string {
  const shared = Object.fromEntries(
    Object.entries(config.Hub).filter(([key]) => !ownSettings.includes(key)),
  );
  const text = JSON.stringify(
    [
      shared,
      config.Authenticator,
      config.Spawner,
      config.Proxy,
      config.pluginSections,
      brandingDigest,
    ],
    sortKeys,
  );
  return hash('sha256', text, 'base64url');
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if ('toJSON' in value) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
