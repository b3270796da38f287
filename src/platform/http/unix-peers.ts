import type { Socket } from 'node:net';

/** Connections that came in over a Unix socket: of a TCP connection that is gone, Node knows no address either. */
const unixPeers = new WeakSet<Socket>();

export function markUnixPeer(socket: Socket): void {
  unixPeers.add(socket);
}

export function isUnixPeer(socket: Socket): boolean {
  return unixPeers.has(socket);
}
