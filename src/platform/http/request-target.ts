import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';

const namedHost = /^([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::(\d{0,5}))?$/i;
const numberedHost = /^\[([0-9a-f:.]+)\](?::(\d{0,5}))?$/i;
const largestPort = 65_535;

/**
 * The name in a Host header as it is compared: without port, in lower case, without the dot that may end
 * it. The port is left out because proxies do so, and none tells one origin of the hub from another.
 * Undefined for whatever is not exactly one host (RFC 9110 §7.2), such as a list of them.
 */
export function hostnameOf(hostHeader: string): string | undefined {
  if (hostHeader !== latest.header) latest = { header: hostHeader, name: readName(hostHeader) };
  return latest.name;
}

/** Most requests name the host that the one before named. */
let latest: { readonly header: string; readonly name: string | undefined } = {
  header: '',
  name: undefined,
};

function readName(hostHeader: string): string | undefined {
  const named = namedHost.exec(hostHeader);
  const [, name = '', port = ''] = named ?? numberedHost.exec(hostHeader) ?? [];
  if (name === '' || Number(port) > largestPort) return undefined;
  if (named !== null) return name.toLowerCase();
  return isIPv6(name) ? `[${name.toLowerCase()}]` : undefined;
}

/**
 * Why a request is answered with 400 for the host that it asks for: it names several, or none. Programs on the way
 * read such a name differently (RFC 9112 §3.2). Only HTTP/1.0 has requests without Host, which Node sees to.
 */
export function hostProblem({
  rawHeaders,
}: Pick<IncomingMessage, 'rawHeaders'>): HubError | undefined {
  let host: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (host !== undefined) return severalHosts();
    host = rawHeaders[index + 1] ?? '';
  }
  return host === undefined || hostnameOf(host) !== undefined ? undefined : noHost();
}

function severalHosts(): HubError {
  return new HubError('bad_request', text`The request names its host more than once.`);
}

function noHost(): HubError {
  return new HubError('bad_request', text`The request names no host.`, {
    hint: text`Host has to hold one name or address, and a port if need be.`,
  });
}

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
