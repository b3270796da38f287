import { trimBlanks } from '../../platform/http/trim-blanks.ts';
import {
  hostPrefix,
  sessionIdCookie,
  stateCookieName,
} from '../../platform/protocol/cookie-names.ts';
import type { Route } from './route.ts';

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
export function maySetCookie(name: string, route: Route): boolean {
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
