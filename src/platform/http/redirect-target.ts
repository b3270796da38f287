import type { Origins } from './origins.ts';

/**
 * The path a login may lead back to, or undefined when `next` points anywhere else.
 *
 * Only paths of the hub's own origin are accepted, and URLs of exactly the origin that serves their path
 * (`origins`), of which the path is given. A URL parser alone is not enough: browsers treat
 * `\` as `/`, skip control characters, and read `//host` as another origin, so all of these are
 * refused before parsing, also when they only show after one decoding.
 */
export function safeRedirectTarget(
  next: string | undefined,
  publicUrl: URL,
  origins?: Pick<Origins, 'urlOf'>,
): string | undefined {
  if (next === undefined || next === '' || next.length > maxTargetLength) return undefined;
  const path = withoutOrigin(next, publicUrl, origins);
  if (!path.startsWith('/') || !isPlain(path)) return undefined;
  const decoded = tryDecode(path.split(/[?#]/, 1)[0] ?? '');
  if (decoded === undefined || !isPlain(decoded)) return undefined;
  const url = URL.parse(path, publicUrl.href);
  if (url === null || url.origin !== publicUrl.origin || url.username !== '') return undefined;
  const target = url.pathname + url.search + url.hash;
  return target.startsWith('//') ? undefined : target;
}

/** The path of a URL on an origin of the hub's; what is on no such origin stays as it is. */
function withoutOrigin(
  next: string,
  publicUrl: URL,
  origins: Pick<Origins, 'urlOf'> | undefined,
): string {
  if (next.startsWith(`${publicUrl.origin}/`)) return next.slice(publicUrl.origin.length);
  const [, path] = /^https?:\/\/[^/]+(\/.*)$/s.exec(next) ?? [];
  return path !== undefined && origins?.urlOf(path) === next ? path : next;
}

const maxTargetLength = 4096;

function isPlain(path: string): boolean {
  return !path.startsWith('//') && !/[\\\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(path);
}

function tryDecode(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
