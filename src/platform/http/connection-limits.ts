import type { Socket } from 'node:net';
import { HubError } from '../errors.ts';
import { text } from '../texts/text.ts';
import { isUnixPeer, type TrustedPeer } from './request-address.ts';

/** Counts open client connections and says which are too many. */
export interface ConnectionLimits {
  /** Counts a new connection until it closes; the refusal when it is one too many. */
  accept(socket: Socket): HubError | undefined;
  readonly open: number;
}

/** How soon a refused client may try again. */
const retryAfterSeconds = 5;

/**
 * 0 stands for no limit. The addresses of trusted proxies, and a Unix socket, stand for many clients, so
 * only the limit in all holds for them. Of an IPv6 address the first half counts: the rest is the
 * client's own choice.
 */
export function createConnectionLimits(options: {
  readonly perAddress: number;
  readonly inAll: number;
  /** How many connections and programs the open files last for; two for each of either. */
  readonly affordable?: number;
  readonly programs?: { readonly count: number };
  readonly isTrustedPeer: TrustedPeer;
}): ConnectionLimits {
  const { perAddress, inAll, isTrustedPeer, affordable = Infinity, programs } = options;
  const openByAddress = new Map<string, number>();
  let open = 0;

  function count(address: string, change: 1 | -1): void {
    open += change;
    const left = (openByAddress.get(address) ?? 0) + change;
    if (left === 0) openByAddress.delete(address);
    else openByAddress.set(address, left);
  }

  return {
    accept(socket) {
      const isOutOfFiles = open + (programs?.count ?? 0) >= affordable;
      if (isOutOfFiles || (inAll > 0 && open >= inAll)) {
        return new HubError('unavailable', text`The hub has too many connections at once.`, {
          retryAfterSeconds,
        });
      }
      const peer = socket.remoteAddress ?? '';
      const address = networkOf(peer);
      const isOver = perAddress > 0 && (openByAddress.get(address) ?? 0) >= perAddress;
      if (isOver && !isUnixPeer(socket) && !isTrustedPeer(peer)) {
        return new HubError(
          'too_many_requests',
          text`Your address has too many connections open.`,
          {
            hint: text`Close some and try again.`,
            retryAfterSeconds,
          },
        );
      }
      count(address, 1);
      socket.once('close', () => count(address, -1));
      return undefined;
    },
    get open() {
      return open;
    },
  };
}

/** An IPv4 address itself; of an IPv6 address the /64 network it is in. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  if (address.includes('.')) return address.slice(address.lastIndexOf(':') + 1);
  const [left = '', right] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = left === '' ? [] : left.split(':');
  if (right !== undefined) {
    const tail = right === '' ? [] : right.split(':');
    while (groups.length + tail.length < 8) groups.push('0');
    groups.push(...tail);
  }
  return groups.slice(0, 4).join(':');
}
