import type { Config } from '../../platform/config/config.ts';
import { Secret } from '../../platform/config/secret.ts';
import { deriveSecrets } from '../../platform/crypto/derived-secrets.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { tokenPrefix } from '../../platform/crypto/random.ts';
import type { CertificateSource } from '../../platform/http/tls/certificate-source.ts';
import type { GatewayConfig, GatewaySettings } from './feed-events.ts';

/** The tokens of the gateways that the hub starts itself: the first is given, all are taken. */
export function gatewayTokens(secrets: readonly Secret[]): readonly Secret[] {
  return deriveSecrets(secrets, 'gateway-token').map(
    (secret) => new Secret(tokenPrefix + secret.reveal()),
  );
}

/** What the gateways of a hub are run with, and its digest, by which a gateway of other settings is known. */
export function gatewaySettings({
  config,
  gatewaySecrets,
  version,
  certificates,
}: {
  readonly config: Config;
  readonly gatewaySecrets: readonly Secret[];
  readonly version: string;
  readonly certificates?: Pick<CertificateSource, 'clientAuthorities'>;
}): {
  readonly settings: GatewaySettings;
  readonly digest: string;
} {
  const settings: GatewaySettings = {
    version,
    config: {
      ...gatewayConfig(config),
      clientAuthorities: certificates?.clientAuthorities,
    },
    secrets: gatewaySecrets.map((secret) => secret.reveal()),
  };
  return { settings, digest: hashSecret(JSON.stringify(settings)) };
}

function gatewayConfig({ Hub, Proxy: proxyConfig, ...config }: Config): GatewayConfig {
  return {
    Hub: {
      trusted_proxies: Hub.trusted_proxies,
      trust_forwarded_host: Hub.trust_forwarded_host,
      environment_prefixes: Hub.environment_prefixes,
      hsts_max_age_days: Hub.hsts_max_age_days,
      bind_url: Hub.bind_url,
      http2: Hub.http2,
      bind_socket_mode: Hub.bind_socket_mode,
      shutdown_timeout: Hub.shutdown_timeout,
      gateway_linger: Hub.gateway_linger,
      log_level: Hub.log_level,
      log_format: Hub.log_format,
      log_time_format: Hub.log_time_format,
      log_level_format: Hub.log_level_format,
    },
    ...(Hub.tracing && {
      tracing: {
        ...Hub.tracing,
        headers: mapValues(Hub.tracing.headers, (value) => value.reveal()),
      },
    }),
    Proxy: proxyConfig,
    basePath: config.basePath,
    publicUrl: config.publicUrl.href,
    connectUrl: config.connectUrl.href,
    subdomainHost: config.subdomainHost?.href ?? null,
  };
}

/** The same as the parts of a gateway take it. */
export function readGatewayConfig(written: GatewayConfig) {
  const { tracing } = written;
  return {
    Hub: {
      ...written.Hub,
      tracing: tracing && {
        ...tracing,
        headers: mapValues(tracing.headers, (value) => new Secret(value)),
      },
    },
    Proxy: written.Proxy,
    basePath: written.basePath,
    publicUrl: new URL(written.publicUrl),
    connectUrl: new URL(written.connectUrl),
    clientAuthorities: written.clientAuthorities,
    subdomainHost: written.subdomainHost === null ? undefined : new URL(written.subdomainHost),
  };
}

function mapValues<Value, Mapped>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value) => Mapped,
): Record<string, Mapped> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

/** What must be the same at all hubs that a gateway may come to, for it to go on as it is. */
export function sharedPart({ config, secrets }: GatewaySettings): string {
  const { Hub, basePath, publicUrl, subdomainHost, clientAuthorities } = config;
  const { trusted_proxies, trust_forwarded_host, environment_prefixes, hsts_max_age_days } = Hub;
  return JSON.stringify([
    secrets,
    [basePath, publicUrl, subdomainHost, clientAuthorities],
    [trusted_proxies, trust_forwarded_host, environment_prefixes, hsts_max_age_days],
    config.Proxy,
  ]);
}
