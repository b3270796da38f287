import { originVariables } from '../../platform/http/origin-variables.ts';
import type { Origins } from '../../platform/http/origins.ts';
import type { HubVariables } from '../../platform/protocol/hub-variables.ts';
import { childEnvironment } from '../../spawning/processes/child-environment.ts';
import type { SystemUser } from '../../spawning/processes/system-user.ts';
import type { Service } from './service.ts';

/** Where the hub is, as its services are told. */
export interface HubLocation {
  /** Of the API, without a slash at the end: `http://127.0.0.1:8080/hub/api`. */
  readonly apiUrl: string;
  readonly origins: Origins;
  readonly basePath: string;
}

export interface ServiceEnvironmentOptions extends HubLocation {
  /** `Hub.environment_prefixes`. */
  readonly prefixes: readonly string[];
  /** The hub's own environment, of which only an allow-list is passed on. */
  readonly inherited: Readonly<Record<string, string | undefined>>;
  readonly user: SystemUser | undefined;
}

/** Builds the whole environment of a managed service. Holds its token: never log it. */
export function serviceEnvironment(
  service: Service,
  options: ServiceEnvironmentOptions,
): Record<string, string> {
  const { prefixes, inherited, basePath, user } = options;
  return childEnvironment({
    inherited,
    prefixes,
    basePath,
    user,
    variables: serviceVariables(service, options),
    extra: service.launch?.environment ?? {},
  });
}

/** The variables of the specification's table, and those that JupyterHub software reads too. */
function serviceVariables(
  service: Service,
  { apiUrl, origins, basePath }: HubLocation,
): HubVariables {
  const { name, prefix, url, apiToken, clientId, redirectUris, allowedScopes } = service;
  const owner = { kind: 'service', name } as const;
  const accessScopes = JSON.stringify(service.accessScopes);
  return {
    SERVICE_NAME: name,
    API_TOKEN: apiToken?.reveal(),
    API_URL: apiUrl,
    ...originVariables(origins, { owner, basePath, redirectUri: redirectUris[0] ?? '' }),
    SERVICE_PREFIX: prefix,
    SERVICE_URL: url,
    OAUTH_SCOPES: accessScopes,
    OAUTH_ACCESS_SCOPES: accessScopes,
    OAUTH_CLIENT_ALLOWED_SCOPES: JSON.stringify(allowedScopes),
    CLIENT_ID: clientId,
    PUBLIC_URL: url === undefined ? undefined : origins.of(owner) + prefix,
  };
}
