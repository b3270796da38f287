import type { HubVariables } from '../protocol/hub-variables.ts';
import type { OriginOwner, Origins } from './origins.ts';

/** What a server or service is told of its own origin and the hub's. */
export function originVariables(
  origins: Origins,
  options: {
    readonly owner: OriginOwner;
    readonly basePath: string;
    /** A path on the own origin, or an absolute URI. */
    readonly redirectUri: string;
  },
): HubVariables {
  const { owner, basePath, redirectUri } = options;
  const own = origins.of(owner);
  const callback = new URL(redirectUri, own);
  // Programs written for JupyterHub make a route of it where all have one origin; both are one URI to the hub.
  const isPath = own === origins.hub && callback.origin === own;
  return {
    BASE_URL: origins.hub + basePath,
    PUBLIC_HUB_URL: `${origins.hub}${basePath}hub/`,
    // Set only where the hub is on another host.
    HOST: origins.areSeparate ? origins.hub : '',
    OAUTH_CALLBACK_URL: isPath
      ? callback.pathname + callback.search
      : redirectUri.startsWith('/')
        ? own + redirectUri
        : redirectUri,
    COOKIE_HOST_PREFIX_ENABLED: origins.hasHostCookies ? '1' : '0',
  };
}
