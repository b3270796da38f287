import { accessScopeFor, serviceClientId } from '../platform/protocol/client-id.ts';
import type { HubApi } from './hub-api.ts';

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Options of `HubAuth`, spelled as the specification does. Each has its default in a HUB_* variable. */
export interface HubAuthOptions {
  /** HUB_API_TOKEN. Token of this service; also the secret of its OAuth client. */
  readonly api_token?: string | undefined;
  /** HUB_API_URL; `http://127.0.0.1:8080/hub/api`. */
  readonly api_url?: string | undefined;
  /** HUB_SERVICE_NAME. */
  readonly service_name?: string | undefined;
  /** HUB_SERVICE_PREFIX; `/services/<service_name>/`. Path of the service, a slash at both ends. */
  readonly service_prefix?: string | undefined;
  /** HUB_BASE_URL; `/`, which means the origin the browser is on. */
  readonly hub_base_url?: string | undefined;
  /** HUB_PUBLIC_URL; `hub_base_url` when that has an origin. Decides `Secure` and the own origin. */
  readonly public_url?: string | undefined;
  /** HUB_OAUTH_SCOPES (JSON list); `access:services!service=<service_name>`. Any of them allows access. */
  readonly oauth_scopes?: readonly string[] | undefined;
  /** Scopes any of which allows access, in place of `oauth_scopes`, `hub_users` and `hub_groups`. */
  readonly hub_scopes?: readonly string[] | undefined;
  /** Users who are allowed; ignored when `hub_scopes` is given. */
  readonly hub_users?: Iterable<string> | undefined;
  /** Groups whose members are allowed; ignored when `hub_scopes` is given. */
  readonly hub_groups?: Iterable<string> | undefined;
  /** Seconds an answer of the hub about a token is used again; 300. Zero asks every time. */
  readonly cache_max_age?: number | undefined;
  /** Another name of `cache_max_age`. */
  readonly cookie_cache_max_age?: number | undefined;
  /** HUB_ALLOW_TOKEN_IN_URL (`0` for no); yes. Whether `?token=` is accepted. */
  readonly allow_token_in_url?: boolean | undefined;
  /** Seconds the hub has to answer; 10. */
  readonly request_timeout?: number | undefined;
  /** How to reach the hub; HTTP requests to `api_url` unless given. */
  readonly hub_api?: HubApi | undefined;
  /** Where the variables are looked up; the environment of the process unless given. */
  readonly environment?: Environment | undefined;
}

/** Options of `HubOAuth`: those of `HubAuth` and what the browser's login needs. */
export interface HubOAuthOptions extends HubAuthOptions {
  /** HUB_CLIENT_ID; `service-<service_name>`. Also the name of the token cookie. */
  readonly oauth_client_id?: string | undefined;
  /** HUB_OAUTH_CALLBACK_URL; `<service_prefix>oauth_callback`. A path or a URL, as registered. */
  readonly oauth_redirect_uri?: string | undefined;
  /** HUB_OAUTH_CLIENT_ALLOWED_SCOPES (JSON list). Asked for at login beside those that allow access. */
  readonly request_scopes?: readonly string[] | undefined;
  /** What the names of the cookies of logins under way begin with; `<oauth_client_id>-oauth-state`. */
  readonly state_cookie_name?: string | undefined;
  /** Cookie encryption key, or a list of them: the first encrypts, all decrypt. `api_token` unless given. */
  readonly cookie_secret?: string | readonly string[] | undefined;
  /**
   * HUB_COOKIE_HOST_PREFIX_ENABLED (`1` for yes); no. Names cookies `__Host-…`, so that pages of neighbours
   * below the same domain cannot plant them. Needs https and an origin of the service's own.
   */
  readonly cookie_host_prefix?: boolean | undefined;
  /** Issuer the hub must name in `iss` when it sends one (RFC 9207); `hub_base_url` unless given. */
  readonly issuer?: string | undefined;
}

/** Options of `HubAuth` with every default applied. */
export interface HubAuthSettings {
  readonly apiToken: string;
  readonly apiUrl: string;
  readonly serviceName: string | undefined;
  readonly servicePrefix: string;
  readonly hubBaseUrl: string;
  readonly publicOrigin: string | undefined;
  readonly oauthScopes: readonly string[];
  readonly cacheMaxAgeSeconds: number;
  readonly allowsTokenInUrl: boolean;
  readonly requestTimeoutMs: number;
  readonly hasHostCookies: boolean;
  readonly clientId: string | undefined;
}

/** Applies the defaults. Throws TypeError that names the option and the variable. */
export function resolveOptions(options: HubOAuthOptions): HubAuthSettings {
  const env = options.environment ?? process.env;
  const serviceName = options.service_name ?? filled(env['HUB_SERVICE_NAME']);
  const apiToken = options.api_token ?? env['HUB_API_TOKEN'] ?? '';
  if (apiToken === '') throw missing('api_token', 'HUB_API_TOKEN');
  const hubBaseUrl = withEndSlash(options.hub_base_url ?? filled(env['HUB_BASE_URL']) ?? '/');
  if (!hubBaseUrl.startsWith('/') && !isHttpUrl(hubBaseUrl)) {
    throw invalid('hub_base_url', 'HUB_BASE_URL', 'is neither a path nor an http(s) URL');
  }
  const publicUrl = options.public_url ?? filled(env['HUB_PUBLIC_URL']) ?? hubBaseUrl;
  return {
    apiToken,
    apiUrl: apiUrlOf(options, env),
    serviceName,
    servicePrefix: servicePrefixOf(options, env, serviceName),
    hubBaseUrl,
    publicOrigin: URL.parse(publicUrl)?.origin,
    oauthScopes: oauthScopesOf(options, env, serviceName),
    cacheMaxAgeSeconds: cacheMaxAgeOf(options),
    allowsTokenInUrl:
      options.allow_token_in_url ?? !/^(0|false|no)$/i.test(env['HUB_ALLOW_TOKEN_IN_URL'] ?? ''),
    requestTimeoutMs: (options.request_timeout ?? 10) * 1000,
    hasHostCookies:
      options.cookie_host_prefix ??
      /^(1|true|yes)$/i.test(env['HUB_COOKIE_HOST_PREFIX_ENABLED'] ?? ''),
    clientId:
      options.oauth_client_id ??
      filled(env['HUB_CLIENT_ID']) ??
      (serviceName === undefined ? undefined : serviceClientId(serviceName)),
  };
}

function apiUrlOf(options: HubAuthOptions, env: Environment): string {
  const url = options.api_url ?? filled(env['HUB_API_URL']) ?? 'http://127.0.0.1:8080/hub/api';
  if (!isHttpUrl(url)) throw invalid('api_url', 'HUB_API_URL', 'is not an http(s) URL');
  return url.replace(/\/+$/, '');
}

function servicePrefixOf(
  options: HubAuthOptions,
  env: Environment,
  serviceName: string | undefined,
): string {
  const prefix =
    options.service_prefix ??
    filled(env['HUB_SERVICE_PREFIX']) ??
    (serviceName === undefined ? undefined : `/services/${serviceName}/`);
  if (prefix === undefined) throw missing('service_prefix', 'HUB_SERVICE_PREFIX');
  if (!prefix.startsWith('/') || prefix.startsWith('//') || /[\\;?#\s]/.test(prefix)) {
    throw invalid('service_prefix', 'HUB_SERVICE_PREFIX', 'is not a path such as /services/x/');
  }
  return withEndSlash(prefix);
}

function oauthScopesOf(
  options: HubAuthOptions,
  env: Environment,
  serviceName: string | undefined,
): readonly string[] {
  const scopes = options.oauth_scopes ?? scopeList(env, 'oauth_scopes', 'HUB_OAUTH_SCOPES');
  if (scopes !== undefined) return [...scopes];
  if (serviceName !== undefined) return [accessScopeFor({ kind: 'service', name: serviceName })];
  if (options.hub_scopes !== undefined) return [...options.hub_scopes];
  if (options.hub_users !== undefined || options.hub_groups !== undefined) return [];
  throw missing('oauth_scopes', 'HUB_OAUTH_SCOPES (or HUB_SERVICE_NAME)');
}

/** Reads a variable that holds a JSON list of scopes. */
export function scopeList(
  env: Environment,
  option: string,
  variable: string,
): readonly string[] | undefined {
  const text = filled(env[variable]);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  } catch {
    // Reported like any other wrong value.
  }
  throw invalid(option, variable, 'is not a JSON list of scopes');
}

function cacheMaxAgeOf(options: HubAuthOptions): number {
  const seconds = options.cache_max_age ?? options.cookie_cache_max_age ?? 300;
  if (!(seconds >= 0)) throw new TypeError('cache_max_age must be zero or more seconds');
  return seconds;
}

function filled(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

function withEndSlash(url: string): string {
  return url.endsWith('/') ? url : `${url}/`;
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}

/** The error of an option that stands neither in the code nor in the environment. */
export function missing(option: string, variable: string): TypeError {
  return new TypeError(`${option} is missing: set the option or the variable ${variable}`);
}

function invalid(option: string, variable: string, problem: string): TypeError {
  return new TypeError(`${option} (variable ${variable}) ${problem}`);
}
