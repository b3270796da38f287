import type { Route } from './route.ts';

/** The browser's session id, which services use as a cache key. It is no credential. */
export const sessionIdCookie = 'hub-session-id';

/** Names the hub and its OAuth clients use. Some readers ignore case, so it does not count here. */
const hubCookieName = /^(?:__(?:host|secure)-)?(?:hub-|service-)/i;
const mayHoldHubCookie = /hub-|service-/i;

/** Whether a Cookie header may hold one of the hub's names; false for most traffic of programs. */
export function mentionsHubCookie(header: string): boolean {
  return mayHoldHubCookie.test(header);
}

/** Whether an upstream may read a cookie: it is foreign to the hub, or the route's own. */
export function mayReadCookie(name: string, route: Route): boolean {
  if (!hubCookieName.test(name)) return true;
  return authenticatesItself(route) && (name === sessionIdCookie || isOwnCookie(name, route));
}

/** Whether an upstream may set a cookie. The session id is the hub's to set. */
export function maySetCookie(name: string, route: Route): boolean {
  if (!hubCookieName.test(name)) return true;
  return authenticatesItself(route) && isOwnCookie(name, route);
}

function authenticatesItself({ access }: Route): boolean {
  return access === 'service' || access === 'server';
}

/** The token cookie itself, and its state cookies: `<name>-oauth-state` with or without a suffix. */
function isOwnCookie(name: string, { cookieName }: Route): boolean {
  if (cookieName === undefined || !name.startsWith(cookieName)) return false;
  return name.length === cookieName.length || name.startsWith('-oauth-state', cookieName.length);
}
