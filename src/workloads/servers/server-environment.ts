import { originVariables } from '../../platform/http/origin-variables.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { accessScopesFor } from '../../platform/protocol/client-id.ts';
import type { HubVariables } from '../../platform/protocol/hub-variables.ts';
import { prefixVariables } from '../../spawning/processes/child-environment.ts';

/** What the environment of a user's server is made from. */
export interface ServerEnvironmentOptions {
  readonly userName: string;
  readonly serverName: string;
  readonly clientId: string;
  /** The server's own token for the hub API. */
  readonly apiToken: string;
  readonly apiUrl: string;
  readonly origins: Origins;
  readonly basePath: string;
  /** Public path of the server, ends in a slash. */
  readonly prefix: string;
  readonly defaultUrl: string;
  readonly allowedScopes: readonly string[];
  readonly memoryLimitBytes: number | undefined;
  readonly cpuLimitCores: number | undefined;
  readonly prefixes: readonly string[];
  /** The hub's own environment, of which only `keep` and `LC_…` are passed on. */
  readonly inherited: Readonly<Record<string, string | undefined>>;
  readonly keep: readonly string[];
  /** From the configuration, a profile and the authenticator's hook; wins over everything. */
  readonly extra: Readonly<Record<string, string>>;
}

/** Builds the environment of a user's server, but for what depends on its address. */
export function serverEnvironment(options: ServerEnvironmentOptions): Record<string, string> {
  const { inherited, keep, prefixes, basePath, extra, userName } = options;
  const kept = Object.entries(inherited).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && (keep.includes(entry[0]) || entry[0].startsWith('LC_')),
  );
  return {
    ...Object.fromEntries(kept),
    USER: userName,
    LOGNAME: userName,
    ...limits(options),
    ...prefixVariables(variables(options), prefixes, basePath),
    ...extra,
  };
}

/** The variables that tell a server where to listen. */
export function addressEnvironment(
  url: string,
  prefixes: readonly string[],
): Record<string, string> {
  return prefixVariables({ SERVICE_URL: url }, prefixes, '/');
}

/** The port in an address; nothing where that is a socket. */
export function portVariable(url: string): Record<string, string> {
  const { port } = new URL(url);
  return port === '' ? {} : { PORT: port };
}

function variables(options: ServerEnvironmentOptions): HubVariables {
  const { userName, serverName, clientId, origins, basePath, apiUrl, prefix } = options;
  const owner = { kind: 'server', userName, serverName } as const;
  const accessScopes = JSON.stringify(accessScopesFor(owner));
  return {
    API_TOKEN: options.apiToken,
    API_URL: apiUrl,
    ACTIVITY_URL: `${apiUrl}/users/${encodeURIComponent(userName)}/activity`,
    ADDRESS_URL: addressUrl(options),
    ...originVariables(origins, { owner, basePath, redirectUri: `${prefix}oauth_callback` }),
    USER: userName,
    SERVER_NAME: serverName,
    CLIENT_ID: clientId,
    SERVICE_PREFIX: prefix,
    OAUTH_SCOPES: accessScopes,
    OAUTH_ACCESS_SCOPES: accessScopes,
    OAUTH_CLIENT_ALLOWED_SCOPES: JSON.stringify(options.allowedScopes),
    PUBLIC_URL: origins.of(owner) + prefix,
    DEFAULT_URL: options.defaultUrl === '' ? undefined : options.defaultUrl,
  };
}

/** Where a server tells its address that chooses it itself. */
function addressUrl({ apiUrl, userName, serverName }: ServerEnvironmentOptions): string {
  const user = `${apiUrl}/users/${encodeURIComponent(userName)}`;
  return serverName === '' ? `${user}/server/address` : `${user}/servers/${serverName}/address`;
}

function limits({
  memoryLimitBytes,
  cpuLimitCores,
}: ServerEnvironmentOptions): Record<string, string> {
  return {
    ...(memoryLimitBytes === undefined ? {} : { MEM_LIMIT: String(memoryLimitBytes) }),
    ...(cpuLimitCores === undefined ? {} : { CPU_LIMIT: String(cpuLimitCores) }),
  };
}
