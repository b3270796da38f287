import { mayReadCookie, mentionsHubCookie } from './hub-cookies.ts';
import type { Route } from './route.ts';

/**
 * Returns what an upstream may see of a Cookie header: cookies of the hub and of other routes are left
 * out, foreign ones stay as they are. Undefined when nothing is left.
 */
export function upstreamCookies(header: string, route: Route): string | undefined {
  if (!mentionsHubCookie(header)) return header;
  let kept = '';
  let isComplete = true;
  let start = 0;
  while (start < header.length) {
    const semicolonAt = header.indexOf(';', start);
    const end = semicolonAt === -1 ? header.length : semicolonAt;
    const pair = header.slice(start, end).trim();
    start = end + 1;
    if (pair === '') continue;
    const equalsAt = pair.indexOf('=');
    const name = equalsAt === -1 ? pair : pair.slice(0, equalsAt).trimEnd();
    if (mayReadCookie(name, route)) kept += kept === '' ? pair : `; ${pair}`;
    else isComplete = false;
  }
  if (isComplete) return header;
  return kept === '' ? undefined : kept;
}
