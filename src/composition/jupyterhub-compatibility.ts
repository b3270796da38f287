import { jupyterHubSessionIdCookie } from '../platform/protocol/cookie-names.ts';

/** What the hub does differently where software written for JupyterHub runs on it. */
export interface JupyterHubCompatibility {
  /** What `GET /hub/api/` gives as `version`. */
  readonly apiVersion: string;
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>;
  /** Further names under which browsers get the session id. */
  readonly sessionIdAliases: readonly string[];
  /** Whether the addresses that JupyterHub software links to, beside the API, are answered. */
  readonly hasAddresses: boolean;
}

/**
 * The version of JupyterHub whose REST API and variables the hub offers. Its software compares it
 * with its own to choose how to ask, and refuses to start when it is not a version in Python's sense.
 */
const jupyterHubVersion = '5.0.0';

/** Decides the compatibility: it comes with the prefix `JUPYTERHUB` in `Hub.environment_prefixes`. */
export function jupyterHubCompatibility(
  environmentPrefixes: readonly string[],
  hubVersion: string,
): JupyterHubCompatibility {
  if (!environmentPrefixes.includes('JUPYTERHUB')) {
    return { apiVersion: hubVersion, headers: {}, sessionIdAliases: [], hasAddresses: false };
  }
  return {
    apiVersion: jupyterHubVersion,
    headers: { 'X-JupyterHub-Version': jupyterHubVersion },
    sessionIdAliases: [jupyterHubSessionIdCookie],
    hasAddresses: true,
  };
}
