import type { IncomingHttpHeaders } from 'node:http';
import { HubError } from '../../platform/errors.ts';
import { trimBlanks } from '../../platform/http/trim-blanks.ts';
import {
  hostPrefix,
  sessionIdCookie,
  stateCookieName,
} from '../../platform/protocol/cookie-names.ts';
import { isKeptFromClients } from '../../platform/protocol/forwarded-headers.ts';
import { text } from '../../platform/texts/text.ts';
import { withEdits } from './header-edits.ts';
import type { ResponseHeaders } from './http1/upstream-message.ts';
import type { Route } from './route.ts';

/**
 * The Cross-Origin-Opener-Policy of an upstream as browsers may have it. The hub's own pages are
 * `same-origin`: an upstream's page of the same policy would join their browsing context group, and
 * could script a page of the hub that it opens. Together with an embedder policy it is a group of its
 * own (HTML, "match cross-origin opener policy values"), which pages with shared memory need.
 */
function openerPolicy(value: string, embedderPolicy: string | undefined): string | undefined {
  const policy = value.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (policy !== 'same-origin') return policy === '' ? undefined : policy;
  const embedder = embedderPolicy?.split(';', 1)[0]?.trim().toLowerCase();
  return embedder === 'require-corp' || embedder === 'credentialless' ? policy : undefined;
}

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
    if (value === undefined || isKeptFromClients(name) || listed?.has(name) === true) continue;
    for (const item of typeof value === 'string' ? [value] : value) {
      const changed = changedValue(name, item);
      if (changed !== undefined) pairs.push(name, changed);
    }
  }
  return route.responseEdits ? withEdits(pairs, route.responseEdits) : pairs;

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

/** Header by which an instance of the hub passes a request on to another one. */
export const hopHeader = 'x-hub-hop';

/** Of one connection only (RFC 9110 §7.6.1); the length of the body is left to the caller. */
const ofConnection = new Set([
  'connection',
  'content-length',
  'expect',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Whether a client reads what comes after a body (RFC 9110 §10.1.4). */
export function acceptsTrailers({ te }: IncomingHttpHeaders): boolean {
  return te !== undefined && /(?:^|,)[\t ]*trailers[\t ]*(?:,|$)/i.test(String(te));
}

/** What frames, routes, authenticates or is acted on before the body has come is no trailer (RFC 9110 §6.5.1). */
const neverTrailers =
  /^(?:content-(?!digest$).*|host|age|cache-control|pragma|date|expires|vary|warning|location|refresh|retry-after|link|range|accept-ranges|max-forwards|expect|if-.*|(?:set-)?cookie2?|authorization|www-authenticate|authentication-.*|proxy-.*|clear-site-data|access-control-.*|cross-origin-.*|x-frame-options|x-content-type-options|permissions-policy|referrer-policy|service-worker-allowed|sec-.*|x-hub-.*|x-request-id)$/;

/** Builds the trailers a client gets from those of the upstream, as it does the headers. */
export function clientTrailers(trailers: ResponseHeaders, route: Route): [string, string][] {
  const fit = Object.entries(trailers).filter(([name]) => !neverTrailers.test(name));
  const pairs = clientResponseHeaders(Object.fromEntries(fit), route);
  return pairs.flatMap((name, index): [string, string][] =>
    index % 2 === 0 && name in trailers ? [[name, pairs[index + 1] ?? '']] : [],
  );
}

/**
 * The headers of a request that goes to another instance of the hub: as they came, because that one
 * checks the visitor and takes out what is not for the upstream. Throws `bad_request` for a second Host.
 */
export function hopRequestHeaders(source: {
  readonly rawHeaders: readonly string[];
  readonly requestId: string;
  readonly headersToAdd: readonly string[];
}): string[] {
  const { rawHeaders, requestId, headersToAdd } = source;
  const listed = optionsIn(rawHeaders);
  const headers: string[] = [];
  let hosts = 0;
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const lowerName = name.toLowerCase();
    if (lowerName === 'host') hosts += 1;
    const isDropped = ofConnection.has(lowerName) || listed.has(lowerName);
    // No client says for an instance where a request came from.
    if (isDropped || lowerName === hopHeader || lowerName === 'x-request-id') continue;
    headers.push(name, rawHeaders[index + 1] ?? '');
  }
  if (hosts > 1) throw new HubError('bad_request', text`The request has two Host headers.`);
  return [...headers, 'X-Request-Id', requestId, ...headersToAdd];
}

/** The headers of the answer of another instance: what the client is to get, as if from here. */
function hopResponseHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): string[] {
  const pairs: string[] = [];
  for (const [name, value = []] of Object.entries(headers)) {
    // Its length is the one thing of the framing that stays true.
    if (ofConnection.has(name) && name !== 'content-length') continue;
    for (const item of [value].flat()) pairs.push(name, item);
  }
  return pairs;
}

/** What Connection lists. A client cannot withdraw Host. */
function optionsIn(rawHeaders: readonly string[]): ReadonlySet<string> {
  const listed = new Set<string>();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() !== 'connection') continue;
    for (const option of (rawHeaders[index + 1] ?? '').toLowerCase().split(',')) {
      listed.add(option.trim());
    }
  }
  listed.delete('host');
  return listed;
}

/** Names the hub and its OAuth clients use. Some readers ignore case, so it does not count here. */
const hubCookieName = /^(?:__(?:host|secure)-)?(?:hub-|service-)/i;
/** Part of every such name, of the aliases of the session id too. */
const mayHoldHubCookie = /hub-|service-/i;

/**
 * Returns what an upstream may see of a Cookie header: cookies of the hub and of other routes are left
 * out, foreign ones stay as they are. Undefined when nothing is left.
 */
export function upstreamCookies(header: string, route: Route): string | undefined {
  // False for most traffic of programs.
  if (route.access === 'foreign' || !mayHoldHubCookie.test(header)) return header;
  let kept = '';
  let isComplete = true;
  let start = 0;
  while (start < header.length) {
    const semicolonAt = header.indexOf(';', start);
    const end = semicolonAt === -1 ? header.length : semicolonAt;
    const pair = trimBlanks(header.slice(start, end));
    start = end + 1;
    if (pair === '') continue;
    const equalsAt = pair.indexOf('=');
    const name = (equalsAt === -1 ? pair : pair.slice(0, equalsAt)).trim();
    if (mayReadCookie(name, route)) kept += kept === '' ? pair : `; ${pair}`;
    else isComplete = false;
  }
  if (isComplete) return header;
  return kept === '' ? undefined : kept;
}

/** Whether an upstream may read a cookie: it is foreign to the hub, or the route's own. */
function mayReadCookie(name: string, route: Route): boolean {
  if (!isHubCookie(name, route)) return true;
  return authenticatesItself(route) && (isSessionId(name, route) || isClientCookie(name, route));
}

/** Whether an upstream may set a cookie. The session id is the hub's to set. */
function maySetCookie(name: string, route: Route): boolean {
  if (route.access === 'foreign' || !isHubCookie(name, route)) return true;
  return authenticatesItself(route) && isClientCookie(name, route);
}

function isHubCookie(name: string, { sessionIdAliases }: Route): boolean {
  return (
    hubCookieName.test(name) ||
    (sessionIdAliases.length > 0 && sessionIdAliases.includes(name.toLowerCase()))
  );
}

function isSessionId(name: string, { sessionIdAliases }: Route): boolean {
  return name === sessionIdCookie || sessionIdAliases.includes(name);
}

/** Whether visitors are checked by the service, server or other hub itself, and not by the gateway. */
export function authenticatesItself({ access }: Route): boolean {
  return access === 'service' || access === 'server' || access === 'foreign';
}

/** Whether a cookie is of a login under way of the route's OAuth client. */
export function isStateCookie(name: string, { cookieName }: Route): boolean {
  return cookieName !== undefined && withoutPrefix(name).startsWith(stateCookieName(cookieName));
}

/** The token cookie of the route's OAuth client, and its state cookies, with or without prefix and suffix. */
function isClientCookie(name: string, route: Route): boolean {
  return withoutPrefix(name) === route.cookieName || isStateCookie(name, route);
}

function withoutPrefix(name: string): string {
  return name.startsWith(hostPrefix) ? name.slice(hostPrefix.length) : name;
}
