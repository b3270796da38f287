import type { Forwarding } from '../../src/platform/protocol/identity-headers.ts';
import { toHeaderObject, upstreamRequestHeaders } from '../../src/traffic/proxy/request-headers.ts';
import { createRoute, type RouteAccess } from '../../src/traffic/proxy/route.ts';

/** Who asks. */
export const client = { address: '203.0.113.7', protocol: 'https', host: 'hub.test:8443' } as const;

/** A route of the service `a`. */
export const routeWith = (
  access: RouteAccess,
  sessionIdAliases?: string[],
  forwarding?: Forwarding,
) =>
  createRoute(
    {
      forwarding,
      prefix: '/services/a/',
      target: 'http://127.0.0.1:9',
      access,
      owner: { kind: 'service', name: 'a' },
      clientId: 'service-a',
      sessionIdAliases,
    },
    0,
  );

/** The headers that its upstream gets, by their names. */
export function sent(
  rawHeaders: string[],
  options: {
    access?: RouteAccess;
    sessionIdAliases?: string[];
    forwarding?: Forwarding;
    headersToAdd?: string[];
    stripAuthorization?: boolean;
  } = {},
) {
  const {
    access = 'gateway',
    sessionIdAliases,
    forwarding,
    headersToAdd = [],
    stripAuthorization = false,
  } = options;
  return toHeaderObject(
    upstreamRequestHeaders({
      rawHeaders,
      route: routeWith(access, sessionIdAliases, forwarding),
      client,
      requestId: 'id-1',
      headersToAdd,
      stripAuthorization,
    }),
  );
}
