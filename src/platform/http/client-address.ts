import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { createAddressList } from '../addresses/local-addresses.ts';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import { hostnameOf } from './request-target.ts';

/** Who is asking, after believing only the proxies the operator trusts. */
export interface ClientAddress {
  readonly address: string;
  /** The peer of the connection itself; `unix` over a Unix socket. */
  readonly peerAddress: string;
  readonly isTrustedProxy: boolean;
  readonly protocol: 'http' | 'https';
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
    if (!isUnix && (trustedProxies.length === 0 || !isTrusted(peerAddress))) {
      return { address: peerAddress, peerAddress, isTrustedProxy: false, protocol: 'http', host };
    }
    const forwardedFor = String(request.headers['x-forwarded-for'] ?? '')
      .split(',')
      .map((part) => plainAddress(part.trim()))
      .filter((part) => isIP(part) !== 0);
    const address = forwardedFor.findLast((part) => !isTrusted(part)) ?? forwardedFor[0];
    const protocol = lastOf(request.headers['x-forwarded-proto']) === 'https' ? 'https' : 'http';
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
  return (peer) => {
    const address = plainAddress(peer);
    return isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  };
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
export interface HopClient {
  readonly address: string;
  readonly protocol: 'http' | 'https';
  readonly host: string;
  readonly isTrustedProxy: boolean;
}

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

/** Connections that came in over a Unix socket: of a TCP connection that is gone, Node knows no address either. */
const unixPeers = new WeakSet<Socket>();

export function markUnixPeer(socket: Socket): void {
  unixPeers.add(socket);
}

export function isUnixPeer(socket: Socket): boolean {
  return unixPeers.has(socket);
}
