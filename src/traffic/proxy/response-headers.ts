import { hopResponseHeaders } from './hop-headers.ts';
import type { ResponseHeaders } from './http1/response-head.ts';
import { maySetCookie } from './hub-cookies.ts';
import { openerPolicy, originHeaders } from './origin-headers.ts';
import type { Route } from './route.ts';

/**
 * What commands a proxy or web server before the hub: to answer with a file or an address of its own in place of the
 * app's answer, to slow down, or to take the hub for ill. nginx, Apache, lighttpd, LiteSpeed, Perlbal, h2o, Envoy.
 */
const frontCommands =
  /^x-(?:accel-(?!buffering$)|(?:lighttpd-)?send-?(?:file|tempfile)|lighttpd-|litespeed-|reproxy-|envoy-)/;

/** Hop-by-hop headers (RFC 9110 §7.6.1), and those that speak for the whole origin. */
const droppedNames = new Set([
  ...originHeaders.keys(),
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Builds the headers a client gets from those of the upstream, as pairs for `writeHead`.
 * `publicHosts` are the hosts, with their ports if any, under which the client and the upstream know
 * the hub: a redirect to one of them is one within the hub.
 */
export function clientResponseHeaders(
  headers: ResponseHeaders,
  route: Route,
  publicHosts: readonly (string | undefined)[] = [],
): string[] {
  if (route.isHop) return hopResponseHeaders(headers);
  const pairs: string[] = [];
  const listed = listedOptions(headers['connection']);
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || isDropped(name) || listed?.has(name) === true) continue;
    for (const item of typeof value === 'string' ? [value] : value) {
      const changed = changedValue(name, item);
      if (changed !== undefined) pairs.push(name, changed);
    }
  }
  return pairs;

  function changedValue(name: string, value: string): string | undefined {
    switch (name) {
      case 'content-length':
        return String(Number(value));
      case 'set-cookie':
        return confinedSetCookie(value, route);
      case 'location':
      case 'content-location':
        return withPrefix(publicLocation(value, route, publicHosts), route);
      case 'service-worker-allowed':
        return confinedPath(value, route);
      case 'cross-origin-opener-policy':
        return openerPolicy(value, headers['cross-origin-embedder-policy']?.toString());
      default:
        return value;
    }
  }
}

/**
 * Confines a cookie of an upstream: undefined for one of the hub's names and for one without a name,
 * which browsers send back as if its value were the name. Domain is removed and a path outside the
 * route becomes the route's, so that no other upstream sees the cookie.
 */
export function confinedSetCookie(setCookie: string, route: Route): string | undefined {
  const [pair = '', ...attributes] = setCookie.split(';');
  const equalsAt = pair.indexOf('=');
  const name = equalsAt === -1 ? '' : pair.slice(0, equalsAt).trim();
  if (name === '' || !maySetCookie(name, route)) return undefined;
  // A browser refuses such a cookie with any other path.
  const needsRootPath = /^__host-/i.test(name);
  let confined = pair;
  for (const attribute of attributes) {
    const separatorAt = attribute.indexOf('=');
    const key = (separatorAt === -1 ? attribute : attribute.slice(0, separatorAt))
      .trim()
      .toLowerCase();
    if (key === 'domain') continue;
    if (key !== 'path' || needsRootPath) {
      confined += `;${attribute}`;
      continue;
    }
    const path = separatorAt === -1 ? '' : attribute.slice(separatorAt + 1).trim();
    confined += `; Path=${confinedPath(path, route)}`;
  }
  return confined;
}

/**
 * A Location that names the upstream's own address, which only the hub can reach, or the hub's, with
 * whatever scheme and port the upstream takes it to have, becomes a path (as `ProxyPassReverse` of
 * Apache does it): apps seldom know that TLS ends before them, or on which port the hub is.
 */
export function publicLocation(
  location: string,
  { upstream }: Route,
  publicHosts: readonly (string | undefined)[] = [],
): string {
  if (!/^(?:https?:|[/\\]{2})/i.test(location)) return location;
  const url = URL.parse(location, upstream.origin);
  if (url === null || !isOurs(url, new URL(upstream.origin), publicHosts)) return location;
  // More than one leading slash would name another host.
  return `/${url.pathname.replace(/^\/+/, '')}${url.search}${url.hash}`;
}

/** The public path for one of an upstream that does not know its prefix. */
function withPrefix(location: string, { stripsPrefix, prefix }: Route): string {
  if (!stripsPrefix) return location;
  const isPath = /^\/(?![/\\])/.test(location) && !location.startsWith(prefix);
  return isPath ? prefix + location.slice(1) : location;
}

function isOurs(url: URL, upstream: URL, publicHosts: readonly (string | undefined)[]): boolean {
  if (url.host === upstream.host) return true;
  return publicHosts.some((host) => {
    const own = host === undefined || host === '' ? null : URL.parse(`http://${host}`);
    if (own === null || own.hostname !== url.hostname) return false;
    return url.port === '' || url.port === own.port || url.port === upstream.port;
  });
}

function confinedPath(path: string, { prefix, stripsPrefix }: Route): string {
  if (path.startsWith(prefix)) return path;
  if (stripsPrefix && path.startsWith('/')) return prefix + path.slice(1);
  return `${path}/` === prefix ? path : prefix;
}

function isDropped(name: string): boolean {
  return droppedNames.has(name) || (name.startsWith('x-') && frontCommands.test(name));
}

function listedOptions(connection: string | string[] | undefined): Set<string> | undefined {
  if (connection === undefined) return undefined;
  const value = typeof connection === 'string' ? connection : connection.join(',');
  if (value === 'keep-alive' || value === 'close') return undefined;
  return new Set(
    value
      .toLowerCase()
      .split(',')
      .map((option) => option.trim()),
  );
}
