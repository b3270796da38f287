import type { IncomingMessage } from 'node:http';

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
export function hopClientOf(request: IncomingMessage): HopClient | undefined {
  return clients.get(request);
}

/** Whether another instance has passed a request on, so that it goes no further. */
export function isFromInstance(request: IncomingMessage): boolean {
  return fromInstances.has(request);
}
