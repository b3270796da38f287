import { resolve } from 'node:path';
import type { ServiceClientSource } from '../../identity/oauth/clients/client-registry.ts';
import type { ServiceConfig } from '../../platform/config/config.ts';
import type { Secret } from '../../platform/config/secret.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { accessScopesFor, serviceClientId } from '../../platform/protocol/client-id.ts';
import { type Forwarding, forwardingOf } from '../../platform/protocol/identity-headers.ts';

/** How a managed service is started. */
export interface ServiceLaunch {
  readonly command: readonly string[];
  /** From the configuration; wins over what the hub passes. */
  readonly environment: Readonly<Record<string, string>>;
  /** Account to run under; the hub's own when undefined. */
  readonly user: string | undefined;
  readonly workingDirectory: string;
  readonly stopGraceMs: number;
  /** Whether a program that the command did not start listens for it. */
  readonly listensElsewhere: boolean;
  /** Of everything in its configuration that its process depends on; the same at each instance. */
  readonly digest: string;
}

/** Something the hub runs (managed) or trusts (external), as the configuration or the API describes it. */
export interface Service extends Required<ServiceClientSource> {
  readonly kind: 'managed' | 'external';
  readonly isAdmin: boolean;
  /** Where its web server listens; undefined when it has none. */
  readonly url: string | undefined;
  /** Path of its pages under the public origin, with a slash at both ends. */
  readonly prefix: string;
  /** Host name for which alone it is. */
  readonly host: string | undefined;
  /** Of browsers, where it has a host name: scheme, host and port. */
  readonly origin: string | undefined;
  readonly stripsPrefix: boolean;
  /** For an app that looks at names. */
  readonly forwarding: Forwarding | undefined;
  /** Whether another proxy forwards to it, and asks the hub about each request. */
  readonly isBehindProxy: boolean;
  readonly rules: ServiceConfig['rules'];
  readonly limits: ServiceConfig['limits'];
  readonly access: 'service' | 'gateway' | 'public';
  readonly isDisplayed: boolean;
  /** Also its OAuth client secret. Undefined for an external service without one. */
  readonly apiToken: Secret | undefined;
  /** All that is kept of the token of an external service that was added at run time. */
  readonly tokenHash: string | undefined;
  /** `api` for one that was added at run time. */
  readonly source: 'config' | 'api';
  /** Scopes of which one is needed to use the service. */
  readonly accessScopes: readonly string[];
  /** Path that tells whether the service is ready. */
  readonly healthPath: string;
  readonly readyTimeoutMs: number;
  /** How long its answers may take to begin; undefined for what the gateway does otherwise. */
  readonly upstreamTimeoutMs: number | undefined;
  /** Undefined for an external service. */
  readonly launch: ServiceLaunch | undefined;
}

/** Makes a service of its configuration. `apiToken` is the configured or the generated one. */
export function createService(
  config: ServiceConfig,
  context: {
    readonly apiToken: Secret | undefined;
    readonly tokenHash?: string | undefined;
    /** `config` unless given. */
    readonly source?: Service['source'];
    readonly basePath: string;
    /** Folder against which `cwd` is resolved, and the default for it. */
    readonly directory: string;
  },
): Service {
  const { name, command, place, strip_prefix: stripsPrefix } = config;
  const { apiToken, tokenHash, source = 'config', basePath, directory } = context;
  const { prefix = `${basePath}services/${name}/`, host, origin } = place ?? {};
  const gatewayCallback = `${origin ?? ''}${prefix}oauth_callback`;
  const { oauth_redirect_uri, oauth_redirect_uris } = config;
  const registered = [oauth_redirect_uri ?? [], oauth_redirect_uris].flat();
  const redirectUris = registered.length === 0 ? [gatewayCallback] : registered;
  return {
    name,
    kind: command === undefined ? 'external' : 'managed',
    isAdmin: config.admin,
    url: config.url,
    prefix,
    host,
    origin,
    stripsPrefix,
    forwarding: forwardingOf(config),
    isBehindProxy: place?.isBehindProxy ?? false,
    rules: config.rules,
    limits: config.limits,
    access: config.access,
    isDisplayed: config.display,
    info: config.info,
    apiToken,
    tokenHash,
    source,
    clientId: clientIdOf(config),
    redirectUris,
    isPublic: config.oauth_public,
    grants: config.oauth_grants,
    mayOutliveLogin: config.oauth_offline,
    requiresPush: config.oauth_require_push,
    jwks: config.oauth_jwks,
    jwksUri: config.oauth_jwks_uri,
    logoutUrl: config.oauth_logout_url,
    postLogoutUris: config.oauth_post_logout_uris,
    allowedScopes: config.oauth_client_allowed_scopes,
    accessScopes: accessScopesFor({ kind: 'service', name }),
    // The hub would ask for itself, unless the codes go elsewhere or the app is told more of its visitors.
    skipsConsent:
      config.oauth_no_confirm ??
      (config.access === 'gateway' &&
        redirectUris.every((uri) => uri === gatewayCallback) &&
        config.oauth_client_allowed_scopes.length === 0),
    idTokenAlgorithm: config.oauth_id_token_alg,
    healthPath: (stripsPrefix ? '/' : prefix) + (config.health_path ?? '/').slice(1),
    readyTimeoutMs: config.timeout * 1000,
    upstreamTimeoutMs:
      config.upstream_timeout === undefined ? undefined : config.upstream_timeout * 1000,
    launch:
      command === undefined
        ? undefined
        : {
            command,
            environment: config.environment ?? {},
            user: config.user,
            workingDirectory: resolve(directory, config.cwd ?? '.'),
            stopGraceMs: config.stop_timeout * 1000,
            listensElsewhere: config.listens_elsewhere,
            digest: digestOf(config),
          },
  };
}

function digestOf(config: ServiceConfig): string {
  const { name, command, environment, user, cwd, url, health_path, strip_prefix } = config;
  const { timeout, stop_timeout, listens_elsewhere } = config;
  const { oauth_client_id, oauth_redirect_uri, oauth_redirect_uris } = config;
  const parts = [
    [name, command, Object.entries(environment ?? {}).toSorted(), user, cwd],
    [url, health_path, strip_prefix, timeout, stop_timeout, listens_elsewhere],
    [oauth_client_id, oauth_redirect_uri, oauth_redirect_uris, config.oauth_client_allowed_scopes],
  ];
  return hashSecret(JSON.stringify(parts));
}

/** The OAuth client id of a configured service. */
export function clientIdOf({ name, oauth_client_id }: ServiceConfig): string {
  return oauth_client_id ?? serviceClientId(name);
}

/** Where the hub itself calls a service, by the names of the settings. */
export function calledAddresses(config: ServiceConfig): readonly (readonly [string, string])[] {
  const { url, oauth_logout_url, oauth_jwks_uri } = config;
  return Object.entries({ url, oauth_logout_url, oauth_jwks_uri }).flatMap(([field, address]) =>
    address === undefined ? [] : [[field, address] as const],
  );
}
