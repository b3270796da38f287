import type { IncomingMessage } from 'node:http';
import { HubError } from '../../platform/errors.ts';
import { isNavigation } from '../../platform/http/content-negotiation.ts';
import type { Origins } from '../../platform/http/origins.ts';
import type { CanonicalPath, ClientAddressReader } from '../../platform/http/request-address.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';

/** What becomes of a request that came to the wrong host. */
export interface HostRefusal {
  readonly error: HubError;
  /** Where a browser that goes to a page is sent instead. */
  readonly location?: string;
}

/** Serves each path on its own host only (`Hub.subdomain_host`). */
export interface HostRules {
  /** Undefined where the request is on the right host. `route` is what its path leads to, if anything. */
  check(
    req: IncomingMessage,
    path: CanonicalPath,
    route: Route | undefined,
  ): HostRefusal | undefined;
}

/** Undefined where all have one origin: then any host name will do. */
export function createHostRules(deps: {
  readonly origins: Origins;
  readonly clientAddress: ClientAddressReader;
  readonly hubPath: string;
  readonly apiPath: string;
}): HostRules | undefined {
  const { origins, clientAddress, hubPath, apiPath } = deps;
  if (!origins.areSeparate) return undefined;
  const originsOfRoutes = new WeakMap<Route, string>();
  const staticPath = `${hubPath}static/`;
  // Pages of JupyterHub software show it from their own host.
  const logoPath = `${hubPath}logo`;
  const openPaths = new Set(['health', 'ready', 'metrics'].map((name) => hubPath + name));

  function originOfRoute(route: Route): string {
    let origin = originsOfRoutes.get(route);
    if (origin === undefined) {
      origin = origins.of(route.owner);
      originsOfRoutes.set(route, origin);
    }
    return origin;
  }

  /** Where no server answers, the hub says so, on its own host and on that of the server. */
  function originOfPath(pathname: string, here: string | undefined): string {
    const owner = origins.ownerOf(pathname);
    const own = owner === undefined ? undefined : origins.of(owner);
    return own === here && own !== undefined ? own : origins.hub;
  }

  /** What is the same for all visitors: error pages of every host show themselves with it. */
  function isForAll(req: IncomingMessage, { pathname }: CanonicalPath): boolean {
    return req.method === 'GET' && (pathname.startsWith(staticPath) || pathname === logoPath);
  }

  /** Probes and programs come by whatever name the machine has; without a cookie there is no login to use. */
  function isForPrograms(req: IncomingMessage, { pathname }: CanonicalPath): boolean {
    const isOpen = openPaths.has(pathname) || pathname.startsWith(apiPath);
    return isOpen && req.headers.cookie === undefined;
  }

  return {
    check(req, path, route) {
      // It was found by its host.
      if (route?.host !== undefined) return undefined;
      const here = origins.ofHost(clientAddress(req).host);
      const rightOrigin =
        route === undefined ? originOfPath(path.pathname, here) : originOfRoute(route);
      if (here === rightOrigin) return undefined;
      if (route === undefined && isForAll(req, path)) return undefined;
      if (here === undefined) {
        if (route === undefined && isForPrograms(req, path)) return undefined;
        // Not redirected: a proxy that does not pass the host on would make it an endless loop.
        return { error: unknownHost(rightOrigin) };
      }
      const error = wrongHost(rightOrigin);
      const mayFollow = isNavigation(req.method, req.headers);
      return mayFollow ? { error, location: rightOrigin + path.target } : { error };
    },
  };
}

function wrongHost(rightOrigin: string): HubError {
  return new HubError('misdirected', text`This address belongs to another host.`, {
    hint: text`Ask for the same path at ${rightOrigin}.`,
  });
}

function unknownHost(rightOrigin: string): HubError {
  return new HubError('misdirected', text`The hub does not go by this host name.`, {
    hint: text`Go to ${rightOrigin}. A proxy in front of the hub must pass on the Host header as it came.`,
  });
}
