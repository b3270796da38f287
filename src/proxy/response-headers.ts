import { maySetCookie } from './hub-cookies.ts';
import type { Route } from './route.ts';

/** Response headers by lower-case name, as undici and `node:http` give them. */
export type UpstreamResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Hop-by-hop headers (RFC 9110 §7.6.1), and headers that speak for the whole origin, which is the
 * hub's: one upstream must not clear its cookies, move it elsewhere or pin it.
 */
const droppedNames = new Set([
  'alt-svc',
  'clear-site-data',
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-connection',
  'public-key-pins',
  'strict-transport-security',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Builds the headers a client gets from those of the upstream, as pairs for `writeHead`. */
export function clientResponseHeaders(headers: UpstreamResponseHeaders, route: Route): string[] {
  const pairs: string[] = [];
  const listed = listedOptions(headers['connection']);
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value === undefined || droppedNames.has(name) || listed?.has(name) === true) continue;
    if (typeof value === 'string') addHeader(pairs, name, value, route);
    else for (const item of value) addHeader(pairs, name, item, route);
  }
  return pairs;
}

function addHeader(pairs: string[], name: string, value: string, route: Route): void {
  let changed: string | undefined = value;
  if (name === 'set-cookie') changed = confinedSetCookie(value, route);
  else if (name === 'location' || name === 'content-location')
    changed = publicLocation(value, route);
  else if (name === 'service-worker-allowed') changed = confinedPath(value, route);
  if (changed !== undefined) pairs.push(name, changed);
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

/** A Location that names the upstream's own address, which only the hub can reach, becomes a path. */
export function publicLocation(location: string, { upstream }: Route): string {
  if (!/^(?:https?:|[/\\]{2})/i.test(location)) return location;
  const url = URL.parse(location, upstream.origin);
  if (url === null || url.host !== new URL(upstream.origin).host) return location;
  // More than one leading slash would name another host.
  return `/${url.pathname.replace(/^\/+/, '')}${url.search}${url.hash}`;
}

function confinedPath(path: string, { prefix }: Route): string {
  if (path.startsWith(prefix)) return path;
  return `${path}/` === prefix ? path : prefix;
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
