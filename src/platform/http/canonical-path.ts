/** A request target that can be read in one way only, so that what is decided is what is forwarded. */
export interface CanonicalPath {
  /** The request target exactly as it was sent. */
  readonly target: string;
  /** The part before the query, still encoded. */
  readonly pathname: string;
  /** Whether nothing is percent-encoded and no segment is empty: no second reading exists. */
  readonly isPlain: boolean;
}

/** Segments without percent signs, none of them empty or beginning with a dot; then the query. */
const plainTarget =
  /^(?:\/[^\x00-\x20#%./?\\\x7f-\uffff][^\x00-\x20#%/?\\\x7f-\uffff]*)*\/?(?:\?[^\x00-\x20#\x7f]*)?$/;
const forbiddenInPath = /[\x00-\x20#\\\x7f-\uffff]/;
const forbiddenInQuery = /[\x00-\x20#\x7f]/;
const forbiddenDecoded = /[\x00-\x1f\x7f-\x9f\\]|^\/\//;
/** Servlet containers cut a segment at its semicolon, so `..;x` climbs too. */
const dotSegment = /\/\.{1,2}(?:;[^/]*)?(?:\/|$)/;

/**
 * Reads a request target in origin form (RFC 9112 §3.2.1). Undefined for whatever a later reader could
 * take for another path: dot segments, backslashes, control characters, fragments, bytes that are no
 * UTF-8, a leading double slash. Encoded slashes and empty segments are left to `RouteTable.match`.
 */
export function canonicalPath(requestTarget: string): CanonicalPath | undefined {
  if (!requestTarget.startsWith('/')) return undefined;
  const queryAt = requestTarget.indexOf('?');
  const pathname = queryAt === -1 ? requestTarget : requestTarget.slice(0, queryAt);
  if (plainTarget.test(requestTarget)) return { target: requestTarget, pathname, isPlain: true };

  if (forbiddenInPath.test(pathname)) return undefined;
  if (queryAt !== -1 && forbiddenInQuery.test(requestTarget.slice(queryAt))) return undefined;
  const decoded = decodePath(pathname);
  if (decoded === undefined || forbiddenDecoded.test(decoded) || dotSegment.test(decoded)) {
    return undefined;
  }
  return { target: requestTarget, pathname, isPlain: false };
}

/** Decodes a whole path once; undefined when an encoding is broken or not UTF-8. */
export function decodePath(pathname: string): string | undefined {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return undefined;
  }
}

/** Path and query for an app that does not know its prefix; undefined where what follows the prefix would name a host. */
export function withoutPrefix(rest: string): string | undefined {
  return /^(?:\/|%2f|%5c)/i.test(rest) ? undefined : `/${rest}`;
}
