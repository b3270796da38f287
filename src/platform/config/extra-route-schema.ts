import { z } from 'zod';
import type { Forwarding } from '../protocol/identity-headers.ts';
import { httpUrl, seconds } from './common-schema.ts';
import { forwardingKeys } from './forwarding-schema.ts';
import { type RouteLimits, routeLimits } from './route-limits-schema.ts';
import { routeRules } from './route-rules-schema.ts';
import { serviceSchema } from './service-schema.ts';

/** Where a route is: all paths below a prefix, of one host name or of every one. */
export interface RoutePlace {
  /** As it stands in `Proxy.extra_routes`. */
  readonly spec: string;
  /** In lower case; undefined for every host that has no routes of its own. */
  readonly host: string | undefined;
  /** Scheme, host and port of browsers there; undefined without a host name. */
  readonly origin: string | undefined;
  /** As visitors see it, with a slash at both ends. */
  readonly prefix: string;
  /** Whether another proxy forwards to the app, and asks the hub about each request. */
  readonly isBehindProxy: boolean;
}

/** Host name, if any, and path prefix: `/docs/` or `wiki.example.org/`. */
const spec = z
  .string()
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*)?\/([^/?#\\]+\/)*$/,
    'must begin and end with a slash; a host name may stand before it, in lower case and without port',
  );

const extraRoute = z.union([
  httpUrl.transform((target) => complete({ target, access: 'public' })),
  z
    .strictObject({
      target: httpUrl
        .optional()
        .describe('Where requests are forwarded; required unless another proxy forwards them.'),
      access: z
        .enum(['public', 'gateway', 'forward-auth'])
        .default('public')
        .describe(
          'Open to everyone, or guarded: by the gateway, or by another proxy that asks the hub about each request (`forward-auth`). A guarded route is a service, and admits users with the scope `access:services!service=<name>`.',
        ),
      name: serviceSchema.shape.name
        .optional()
        .describe(
          'Service name of a guarded route; derived from host and path when left out: `wiki` for `/wiki/`.',
        ),
      strip_prefix: z.boolean().optional().describe('Whether the prefix is stripped from paths.'),
      host: forwardingKeys.host
        .unwrap()
        .optional()
        .describe(forwardingKeys.host.description ?? ''),
      identity_headers: forwardingKeys.identity_headers
        .unwrap()
        .optional()
        .describe(forwardingKeys.identity_headers.description ?? ''),
      oauth_client_allowed_scopes: serviceSchema.shape.oauth_client_allowed_scopes
        .unwrap()
        .optional()
        .describe(
          'Scopes that a guarded route requests from users beyond identity and access to itself: `read:users:info!user` for display name and email address.',
        ),
      oauth_no_confirm: serviceSchema.shape.oauth_no_confirm.describe(
        'Skip the consent page of a guarded route. Unless set, the page is skipped where it requests no further scopes.',
      ),
      headers: forwardingKeys.headers,
      rules: routeRules.optional(),
      limits: routeLimits.optional(),
      display: z
        .boolean()
        .optional()
        .describe('Whether users see a guarded route on their home page; true when left out.'),
      health_path: serviceSchema.shape.health_path.describe(
        'Path below the prefix that returns a status below 500 once the target of a guarded route is ready.',
      ),
      upstream_timeout: seconds.optional().describe('In place of Proxy.upstream_timeout.'),
    })
    .transform(complete),
]);

/** Every key is there, so that a place where one has no meaning can be checked. */
function complete(route: {
  readonly target?: string | undefined;
  readonly access: 'public' | 'gateway' | 'forward-auth';
  readonly name?: string | undefined;
  readonly strip_prefix?: boolean | undefined;
  readonly host?: Forwarding['host'] | undefined;
  readonly identity_headers?: Forwarding['identity_headers'] | undefined;
  readonly oauth_client_allowed_scopes?: string[] | undefined;
  readonly oauth_no_confirm?: boolean | undefined;
  readonly headers?: Forwarding['headers'] | undefined;
  readonly rules?: z.output<typeof routeRules> | undefined;
  readonly limits?: RouteLimits | undefined;
  readonly display?: boolean | undefined;
  readonly health_path?: string | undefined;
  readonly upstream_timeout?: number | undefined;
}) {
  return route;
}

export const extraRoutes = z
  .record(spec, extraRoute)
  .default({})
  .describe('Additional routes: path prefix, optionally preceded by a host name, to target.');

export type ExtraRoutes = z.output<typeof extraRoutes>;
