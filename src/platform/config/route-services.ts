import type { Config } from './config.ts';
import type { ExtraRoutes, RoutePlace } from './extra-route-schema.ts';
import { serviceSchema } from './service-schema.ts';

/** Reads a key of `Proxy.extra_routes`. On a host name of its own a route is not below the base path. */
export function placeOf(
  spec: string,
  { basePath, publicUrl }: Pick<Config, 'basePath' | 'publicUrl'>,
  isBehindProxy = false,
): RoutePlace {
  const slashAt = spec.indexOf('/');
  const host = spec.slice(0, slashAt);
  const path = spec.slice(slashAt);
  if (host === '')
    return {
      spec,
      host: undefined,
      origin: undefined,
      prefix: basePath + path.slice(1),
      isBehindProxy,
    };
  const port = publicUrl.port === '' ? '' : `:${publicUrl.port}`;
  return {
    spec,
    host,
    origin: `${publicUrl.protocol}//${host}${port}`,
    prefix: path,
    isBehindProxy,
  };
}

/** The services that guarded routes are. */
export function routeServices(
  routes: ExtraRoutes,
  address: Pick<Config, 'basePath' | 'publicUrl'>,
) {
  return Object.entries(routes).flatMap(([spec, route]) => {
    if (route.access === 'public') return [];
    const { target, access, name = nameOf(spec), ...rest } = route;
    const isBehindProxy = access === 'forward-auth';
    const given = Object.entries({ ...rest, name, url: target, access: 'gateway' });
    const options = Object.fromEntries(given.filter(([, value]) => value !== undefined));
    const { api_token: _, ...service } = serviceSchema.parse(options);
    return [{ ...service, place: placeOf(spec, address, isBehindProxy) }];
  });
}

function nameOf(spec: string): string {
  const name = spec
    .replaceAll(/[^A-Za-z0-9.~_]+/g, '-')
    .replaceAll(/^[^A-Za-z0-9]+|-+$/g, '')
    .slice(0, 100);
  return name === '' ? 'route' : name;
}
