import { decodePath } from './request-address.ts';

/**
 * Where a request target that is meant for the base path, and does not spell it so, must go: the root,
 * the base path without its last slash, or encoded in another way, as in `/%40/` for `/@/`. Cookies
 * and routes know one spelling. Undefined for a target that is as it should be, or not the hub's.
 */
export function baseRedirectFor(requestTarget: string, basePath: string): string | undefined {
  if (basePath === '/') return undefined;
  const queryAt = requestTarget.indexOf('?');
  const pathname = queryAt === -1 ? requestTarget : requestTarget.slice(0, queryAt);
  const query = queryAt === -1 ? '' : requestTarget.slice(queryAt);
  if (pathname === '/') return basePath + query;
  const wanted = basePath.split('/').slice(1, -1);
  const given = pathname.split('/').slice(1);
  if (!wanted.every((segment, index) => isSame(segment, given[index]))) return undefined;
  const spelled = basePath + given.slice(wanted.length).join('/') + query;
  return spelled === requestTarget ? undefined : spelled;
}

function isSame(segment: string, other: string | undefined): boolean {
  return other !== undefined && decodePath(other) === decodePath(segment);
}
