import type { z } from 'zod';
import type { acmeSection } from './acme-schema.ts';
import type { backupSection } from './backup-schema.ts';
import type { RoutePlace } from './extra-route-schema.ts';
import type { hubSection } from './hub-schema.ts';
import type { Secret } from './secret.ts';
import type { authenticatorSection, proxySection, spawnerSection } from './sections-schema.ts';
import type { ServiceOptions } from './service-schema.ts';
import type { tracingSection } from './tracing-schema.ts';

/** A service of the configuration, its secret resolved. */
export type ServiceConfig = Readonly<Omit<ServiceOptions, 'api_token'>> & {
  readonly api_token?: Secret;
  /** Where it is in place of `/services/<name>/`: a guarded route of `Proxy.extra_routes`. */
  readonly place?: RoutePlace;
};

/** `Hub.acme`, its secret resolved. */
export type AcmeConfig = Omit<z.output<typeof acmeSection>, 'email' | 'external_account'> & {
  readonly email: string | undefined;
  readonly external_account: { readonly id: string; readonly key: Secret } | undefined;
};

/** `Hub.backup`, its secret resolved. */
export type BackupConfig = Omit<z.output<typeof backupSection>, 'passphrase'> & {
  readonly passphrase: Secret | undefined;
};

/** `Hub.tracing`, its secrets resolved. */
export type TracingConfig = Omit<z.output<typeof tracingSection>, 'headers'> & {
  readonly headers: Readonly<Record<string, Secret>>;
};

/** The listener for a JupyterHub, its secret resolved. */
export interface ProxyApiConfig {
  readonly bind_url: string;
  readonly auth_token: Secret;
  readonly host: string | undefined;
}

type HubOptions = z.output<typeof hubSection>;
export type HubConfig = Readonly<
  Omit<
    HubOptions,
    | 'acme'
    | 'backup'
    | 'services'
    | 'cookie_secret'
    | 'database_url'
    | 'keyv_url'
    | 'instance_url'
    | 'public_url'
    | 'proxy_api'
    | 'tracing'
  >
> & {
  readonly acme: AcmeConfig | undefined;
  readonly backup: BackupConfig | undefined;
  readonly proxy_api: ProxyApiConfig | undefined;
  readonly tracing: TracingConfig | undefined;
  readonly services: readonly ServiceConfig[];
  /** May hold a password: never log it. */
  readonly database_url: string;
  readonly keyv_url?: string;
  readonly instance_url?: string;
  readonly public_url?: string;
  /** The first encrypts, all decrypt. Undefined: `cookie_secret_file` is read or made. */
  readonly cookie_secret: readonly Secret[] | undefined;
};
export type AuthenticatorConfig = Readonly<z.output<typeof authenticatorSection>>;
export type SpawnerConfig = Readonly<z.output<typeof spawnerSection>>;
export type SpawnerProfile = SpawnerConfig['profiles'][number];
export type ProxyConfig = Readonly<z.output<typeof proxySection>>;
export type RoleConfig = HubConfig['load_roles'][number];
export type GroupConfig = HubConfig['load_groups'][number];

/** One configured authenticator: which plugin, under which name, with which options of its own. */
export interface AuthenticatorEntry {
  /** Plugin name, for example `oidc`. */
  readonly class: string;
  /** Unique name among the configured ones; the class unless given. */
  readonly name: string;
  /** Options of this entry, over those of the plugin's section. Not yet checked by the plugin. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** One configured spawner, as an authenticator. */
export type SpawnerEntry = AuthenticatorEntry;

/** One configured hook, as an authenticator. */
export type HookEntry = AuthenticatorEntry;

/** The whole configuration: frozen, checked, secrets resolved, defaults applied. */
export interface Config {
  readonly Hub: HubConfig;
  readonly Authenticator: AuthenticatorConfig;
  readonly Spawner: SpawnerConfig;
  readonly Proxy: ProxyConfig;
  readonly authenticators: readonly AuthenticatorEntry[];
  /** The first one is meant where a profile names none. */
  readonly spawners: readonly SpawnerEntry[];
  /** In the order in which they run before a start. */
  readonly hooks: readonly HookEntry[];
  /** Sections of plugins (`OIDCAuthenticator`, …), secret references still unresolved. */
  readonly pluginSections: Readonly<Record<string, unknown>>;
  /** Folder against which relative paths are resolved: that of the configuration file. */
  readonly directory: string;
  /** Path of the file, when the configuration came from one. */
  readonly file: string | undefined;
  /** `Hub.public_url`, or what `Hub.bind_url` implies; ends in the base path. */
  readonly publicUrl: URL;
  /** Where servers and services reach the API: `Hub.hub_connect_url`, or `Hub.hub_bind_url`. */
  readonly connectUrl: URL;
  /** `Hub.subdomain_host`; undefined where users' servers and services share the hub's origin. */
  readonly subdomainHost: URL | undefined;
  /** Lifetime of a login: `Hub.cookie_max_age_days`. */
  readonly loginLifetimeSeconds: number;
  /** Path of the base URL, with a slash at both ends: `/` or `/team/`. */
  readonly basePath: string;
}
