import type { ConfigProblem } from '../errors.ts';
import type { Config } from './config.ts';
import type { ExtraRoutes } from './extra-route-schema.ts';
import { placeOf } from './route-services.ts';

const shortestToken = 16;
const guardedOnly = [
  'name',
  'identity_headers',
  'oauth_client_allowed_scopes',
  'oauth_no_confirm',
  'rules',
  'display',
  'health_path',
] as const;

/** Finds entries of `Proxy.extra_routes` that would hide the hub, or that say what has no meaning there. */
export function findExtraRouteProblems(config: Config): ConfigProblem[] {
  return [...proxyApiProblems(config), ...routeProblems(config)];
}

/** Finds apps that are to be told more of their visitors than they may ask for. */
export function findIdentityWarnings({ Hub }: Config): ConfigProblem[] {
  return Hub.services.flatMap((service) => {
    if (service.oauth_client_allowed_scopes.length > 0) return [];
    const { name, place, identity_headers } = service;
    const path = place === undefined ? `Hub.services.${name}` : `Proxy.extra_routes.${place.spec}`;
    return (['display_name', 'email'] as const)
      .filter((field) => identity_headers[field] !== undefined)
      .map((field) => ({
        path: `${path}.identity_headers.${field}`,
        message: 'is never sent without "oauth_client_allowed_scopes": ["read:users:info!user"]',
      }));
  });
}

function proxyApiProblems(config: Config): ConfigProblem[] {
  const { proxy_api: api } = config.Hub;
  if (api === undefined) return [];
  const hostMessage = api.host === undefined ? undefined : placeProblem(`${api.host}/`, config);
  const isShort = api.auth_token.reveal().length < shortestToken;
  return [
    ...(hostMessage === undefined ? [] : [{ path: 'Hub.proxy_api.host', message: hostMessage }]),
    ...(isShort
      ? [
          {
            path: 'Hub.proxy_api.auth_token',
            message: `must have at least ${shortestToken} characters: it could be guessed`,
          },
        ]
      : []),
  ];
}

function routeProblems(config: Config): ConfigProblem[] {
  return Object.entries(config.Proxy.extra_routes).flatMap(([spec, route]) => {
    const path = `Proxy.extra_routes.${spec}`;
    const message = placeProblem(spec, config);
    return [
      ...(message === undefined ? [] : [{ path, message }]),
      ...fieldProblems(route, spec, config).map(({ field, message }) => ({
        path: `${path}.${field}`,
        message,
      })),
    ];
  });
}

function placeProblem(spec: string, config: Config): string | undefined {
  const { host } = placeOf(spec, config);
  if (host === undefined) {
    return spec === '/' || /^\/(hub|user|services)\//i.test(decoded(spec))
      ? "would hide the hub's own pages"
      : pathProblem(spec);
  }
  const { publicUrl, subdomainHost } = config;
  const isOfHub = host === publicUrl.hostname || host === subdomainHost?.hostname;
  if (isOfHub) return 'names the host of the hub itself; leave the host name out';
  if (subdomainHost !== undefined && host.endsWith(`.${subdomainHost.hostname}`)) {
    return `may be the host of a user's server: it is below ${subdomainHost.hostname}`;
  }
  return pathProblem(spec.slice(host.length));
}

/** Prefixes are compared as they are written: what could be written otherwise would match nothing. */
function pathProblem(path: string): string | undefined {
  const isPlain = /^[\x21-\x7e]+$/.test(path) && !/[;%]|\/\.{1,2}\//.test(path);
  const isCanonical = isPlain || encodeURI(decoded(path)) === path;
  return isCanonical && !/;|%(?:2f|5c|25)|\/\.{1,2}\//i.test(path)
    ? undefined
    : 'is not a plain path: percent-encode what is not ASCII, and leave out dot segments and encoded slashes';
}

function fieldProblems(
  route: ExtraRoutes[string],
  spec: string,
  { subdomainHost }: Config,
): { field: string; message: string }[] {
  const { access, target, strip_prefix, health_path, host, headers } = route;
  if (access === 'forward-auth') {
    const needless = { target, strip_prefix, health_path, host, headers };
    const problems = Object.entries(needless).flatMap(([field, value]) =>
      value === undefined
        ? []
        : [{ field, message: 'is not for "forward-auth": another proxy forwards to the app' }],
    );
    if (subdomainHost !== undefined && spec.startsWith('/')) {
      const message = 'needs a host name of its own before its path, as Hub.subdomain_host is set';
      problems.push({ field: 'access', message });
    }
    return problems;
  }
  if (target === undefined) return [{ field: 'target', message: 'is missing' }];
  if (access === 'gateway') return [];
  return guardedOnly
    .filter((field) => route[field] !== undefined)
    .map((field) => ({ field, message: 'is for guarded routes only' }));
}

function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
