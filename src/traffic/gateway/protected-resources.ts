import { type Denied, isFromBrowser, type RequestLike } from '../../client/decision.ts';
import { identifyScope } from '../../identity/oauth/requested-scopes.ts';
import type { Answer } from '../../platform/http/answer.ts';
import type { Origins } from '../../platform/http/origins.ts';
import { type CanonicalPath, canonicalPath } from '../../platform/http/request-address.ts';
import type { Route } from '../proxy/route.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { AccessPolicy } from './access-policy.ts';

/** Services and users' servers as protected resources (RFC 9728): how programs find out where to get a token for one. */
export interface ProtectedResources {
  /** The metadata that a request asks for (§3.1); undefined where it asks for something else. */
  metadataFor(
    method: string | undefined,
    path: CanonicalPath,
    hostname: string | undefined,
  ): Answer | undefined;
  /** The same policy, which tells programs that it does not know where the metadata is (§5.1); browsers have a login page. */
  announcedBy(policy: AccessPolicy): AccessPolicy;
}

/** Part of each path at which there is metadata. */
export const wellKnown = '/.well-known/oauth-protected-resource';

/**
 * Each address of a service or server is a resource of its own to its client, which compares it with the one it asked
 * for (§3.3). All addresses of one service or server are the same to the authorization server.
 */
export function createProtectedResources(deps: {
  readonly routes: Pick<RouteTable, 'match'>;
  readonly origins: Pick<Origins, 'of' | 'ownerOf'>;
  readonly publicUrl: URL;
  readonly issuer: string;
}): ProtectedResources {
  const { routes, origins, issuer } = deps;
  const base = deps.publicUrl.pathname.replace(/\/+$/, '');
  const usersPath = `${base}/user/`;
  const originOf = (route: Route) => route.origin ?? origins.of(route.owner);

  /** The path of the resource that metadata is asked of: the well-known path stands before it, or behind the base path. */
  function resourcePath(pathname: string): string | undefined {
    for (const before of [base, '']) {
      const rest = pathname.startsWith(before + wellKnown)
        ? pathname.slice(before.length + wellKnown.length)
        : undefined;
      if (rest === '' || rest?.startsWith('/') === true) return before + (rest || '/');
    }
    return undefined;
  }

  function originOfResource(path: CanonicalPath, hostname: string | undefined): string | undefined {
    const match = routes.match(path, hostname);
    if (match?.kind === 'forward' || match?.kind === 'redirect')
      return isProtected(match.route) ? originOf(match.route) : undefined;
    // A server that is stopped has no route, and says as much as one that nobody has.
    const isServer = match === undefined && path.pathname.startsWith(usersPath);
    return isServer ? origins.of(origins.ownerOf(path.pathname) ?? { kind: 'extra' }) : undefined;
  }

  return {
    metadataFor(method, { pathname }, hostname) {
      const asked = resourcePath(pathname);
      const path = asked === undefined ? undefined : canonicalPath(asked);
      if (path === undefined || (method !== 'GET' && method !== 'HEAD')) return undefined;
      const origin = originOfResource(path, hostname);
      if (origin === undefined) return undefined;
      const metadata = {
        resource: origin + path.pathname,
        authorization_servers: [issuer],
        // What each token has. Without a list some clients ask for all that the hub knows, which is refused.
        scopes_supported: [identifyScope],
        bearer_methods_supported: ['header'],
      };
      return { status: 200, headers: metadataHeaders, body: JSON.stringify(metadata) };
    },

    announcedBy: (policy) => ({
      known: policy.known,
      async decide(route, request) {
        const decision = await policy.decide(route, request);
        if (decision.kind !== 'denied' || decision.status !== 401 || isFromBrowser(request))
          return decision;
        return withMetadata(decision, originOf(route), base, request);
      },
    }),
  };
}

/** The same refusal, with where the metadata of what was asked for is (§5.1). `base`: the hub's base path, without a slash at its end. */
export function withMetadata(
  denied: Denied,
  origin: string,
  base: string,
  { url = '/' }: RequestLike,
): Denied {
  const path = url.split('?', 1)[0] ?? '';
  const own = path.startsWith(`${base}/`) ? base : '';
  const { 'www-authenticate': challenge = 'Bearer realm="hub"', ...headers } = denied.headers;
  const metadataUrl = origin + own + wellKnown + path.slice(own.length);
  const more = `${challenge}, resource_metadata="${metadataUrl}"`;
  return { ...denied, headers: { ...headers, 'www-authenticate': more } };
}

/** Programs in browsers read it, too. */
const metadataHeaders = {
  'content-type': 'application/json',
  'cache-control': 'public, max-age=300',
  'access-control-allow-origin': '*',
};

/** Whether tokens of the hub are good for what is behind a route. */
export function isProtected({ access }: Route): boolean {
  return access !== 'public' && access !== 'foreign';
}
