import { safeRedirectTarget } from '../http/redirect-target.ts';

/** Longer ones would not fit into a cookie with everything else a login has to remember. */
const maxTargetLength = 1024;
const ownOrigin = new URL('http://own.invalid/');

/** A path below the service's prefix that a login may lead to, or undefined for anything else. */
export function ownTarget(
  url: string | undefined,
  prefix: string,
  callbackPath: string,
): string | undefined {
  if (url === undefined || !url.startsWith('/')) return undefined;
  const short = url.length > maxTargetLength ? (url.split(/[?#]/, 1)[0] ?? '') : url;
  const target = safeRedirectTarget(short, ownOrigin);
  if (target === undefined || !target.startsWith(prefix)) return undefined;
  if (target.length > maxTargetLength) return undefined;
  return target.split(/[?#]/, 1)[0] === callbackPath ? undefined : target;
}
