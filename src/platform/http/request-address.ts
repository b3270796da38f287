import type { IncomingMessage } from 'node:http';
import { isIP, isIPv6, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createAddressList } from '../addresses/local-addresses.ts';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';

const namedHost = /^([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::(\d{0,5}))?$/i;
const numberedHost = /^\[([0-9a-f:.]+)\](?::(\d{0,5}))?$/i;
const largestPort = 65_535;

/** Longer ones are read each time, so that the cache stays small. */
const maxCachedLength = 255;
const maxCached = 64;

/** A reader of texts that come again with nearly each request, as the names of hosts do. */
function caching<Answer>(read: (given: string) => Answer): (given: string) => Answer {
  const answers = new Map<string, Answer>();
  return (given) => {
    const known = answers.get(given);
    if (known !== undefined) return known;
    const answer = read(given);
    if (answers.size === maxCached) answers.clear();
    if (given.length <= maxCachedLength) answers.set(given, answer);
    return answer;
  };
}

/**
 * The name in a Host header as it is compared: without port, in lower case, without the dot that may end
 * it. The port is left out because proxies do so, and none tells one origin of the hub from another.
 * Undefined for whatever is not exactly one host (RFC 9110 §7.2), such as a list of them.
 */
export const hostnameOf: (hostHeader: string) => string | undefined = caching(readName);

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

/** Who is asking, after believing only the proxies the operator trusts. */
export interface ClientAddress {
  readonly address: string;
  /** The peer of the connection itself; `unix` over a Unix socket. */
  readonly peerAddress: string;
  readonly isTrustedProxy: boolean;
  readonly protocol: 'http' | 'https';
  /** DER in base64 of the certificate that the client has shown to the hub itself, of an authority that is believed. */
  readonly certificate?: string | undefined;
  /**
   * The Host header's value, or that of X-Forwarded-Host where the operator says so. No host (`hostnameOf`) where
   * a trusted proxy names another one in X-Forwarded-Host, or several.
   */
  readonly host: string;
}

/** Says whether the peer of a connection is a proxy the operator trusts. */
export type TrustedPeer = (address: string) => boolean;

/** Finds the client of a request. */
export type ClientAddressReader = (request: IncomingMessage) => ClientAddress;

/**
 * `trustedProxies` are addresses or CIDR ranges; who may open a Unix socket of the hub is a trusted proxy
 * too, and another instance of the hub has said whose request it passes on. X-Forwarded-For is read
 * from the right, and the first address that is not a trusted proxy is the client: anything further left
 * is the client's own claim. `trustForwardedHost`: what they say in X-Forwarded-Host is the host that was asked for,
 * whatever stands in Host.
 */
export function createClientAddressReader(
  trustedProxies: readonly string[],
  { trustForwardedHost = false }: { readonly trustForwardedHost?: boolean } = {},
): ClientAddressReader {
  const isTrusted = createTrustedPeer(trustedProxies);

  return (request) => {
    const hopClient = hopClientOf(request);
    if (hopClient !== undefined) {
      return { ...hopClient, peerAddress: hopClient.address };
    }
    const isUnix = isUnixPeer(request.socket);
    const peerAddress = isUnix ? 'unix' : plainAddress(request.socket.remoteAddress ?? '');
    const host = request.headers.host ?? '';
    const own = (request.socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http';
    if (!isUnix && (trustedProxies.length === 0 || !isTrusted(peerAddress))) {
      const certificate = own === 'https' ? certificates.get(request.socket) : undefined;
      const address = peerAddress;
      return { address, peerAddress, isTrustedProxy: false, protocol: own, host, certificate };
    }
    const forwardedFor = String(request.headers['x-forwarded-for'] ?? '')
      .split(',')
      .map((part) => plainAddress(part.trim()))
      .filter((part) => isIP(part) !== 0);
    const address = forwardedFor.findLast((part) => !isTrusted(part)) ?? forwardedFor[0];
    const protocol =
      (lastOf(request.headers['x-forwarded-proto']) ?? own) === 'https' ? 'https' : 'http';
    return {
      address: address ?? (isUnix ? 'unknown' : peerAddress),
      peerAddress,
      isTrustedProxy: true,
      protocol,
      host: hostAskedFor(host, request.headers['x-forwarded-host']?.toString(), trustForwardedHost),
    };
  };
}

function hostAskedFor(host: string, forwarded: string | undefined, isBelieved: boolean): string {
  if (forwarded === undefined || forwarded === host) return host;
  if (isBelieved) return forwarded;
  return hostnameOf(forwarded) === hostnameOf(host) ? host : `${host}, ${forwarded}`;
}

/**
 * Why a request is answered with 400 for what a trusted proxy says in X-Forwarded-Host: it names no host, or not the
 * one of Host, which has been looked at before.
 */
export function forwardedHostProblem(
  request: IncomingMessage,
  clientAddress: ClientAddressReader,
): HubError | undefined {
  const { host, 'x-forwarded-host': forwarded } = request.headers;
  if (forwarded === undefined || forwarded === host) return undefined;
  if (hostnameOf(clientAddress(request).host) !== undefined) return undefined;
  return new HubError('bad_request', text`The request names two hosts.`, {
    hint: text`A proxy has to pass on Host as it came, and to replace or remove X-Forwarded-Host.`,
  });
}

/** Tells whether a peer's address is that of a trusted proxy. */
export function createTrustedPeer(trustedProxies: readonly string[]): TrustedPeer {
  const trusted = createAddressList(trustedProxies);
  return caching((peer) => {
    const address = plainAddress(peer);
    return isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  });
}

/** An IPv4 address that arrived over an IPv6 socket, written as IPv4. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function lastOf(header: string | string[] | undefined): string | undefined {
  const value = Array.isArray(header) ? header.at(-1) : header;
  const last = value?.slice(-1000).split(',').at(-1)?.trim();
  return last === '' ? undefined : last;
}

/** Who is asking, as the instance or gateway of the hub says to which the request came first. */
export type HopClient = Omit<ClientAddress, 'peerAddress'>;

/** By way of what a request came: another instance, or a gateway process of this hub. */
export type HopSender = 'instance' | 'gateway';

const clients = new WeakMap<IncomingMessage, HopClient>();
const fromInstances = new WeakSet<IncomingMessage>();

/** Notes by way of what a request came, which has proven itself. */
export function markHop(request: IncomingMessage, client: HopClient, sender: HopSender): void {
  clients.set(request, client);
  if (sender === 'instance') fromInstances.add(request);
}

/** The client of a request that was passed on; undefined for all others. */
function hopClientOf(request: IncomingMessage): HopClient | undefined {
  return clients.get(request);
}

/** Whether another instance has passed a request on, so that it goes no further. */
export function isFromInstance(request: IncomingMessage): boolean {
  return fromInstances.has(request);
}

const certificates = new WeakMap<Socket, string>();

/** Notes what certificate the client of a connection has shown: DER in base64. */
export function noteCertificate(socket: Socket, certificate: string): void {
  certificates.set(socket, certificate);
}

/** Notes it of a connection that came by another one. */
export function copyCertificate(from: Socket, to: Socket): void {
  const certificate = certificates.get(from);
  if (certificate !== undefined) certificates.set(to, certificate);
}

/** Connections that came in over a Unix socket: of a TCP connection that is gone, Node knows no address either. */
const unixPeers = new WeakSet<Socket>();

export function markUnixPeer(socket: Socket): void {
  unixPeers.add(socket);
}

export function isUnixPeer(socket: Socket): boolean {
  return unixPeers.has(socket);
}

/** A user or server name as one path segment; what URLs allow in a segment stays readable. */
export function encodeSegment(name: string): string {
  return encodeURIComponent(name).replaceAll('%40', '@');
}
