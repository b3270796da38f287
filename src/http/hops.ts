import type { IncomingMessage } from 'node:http';

/** Who is asking, as the instance of the hub says to which the request came first. */
export interface HopClient {
  readonly address: string;
  readonly protocol: 'http' | 'https';
  readonly host: string;
}

const clients = new WeakMap<IncomingMessage, HopClient>();

/** Notes that a request came by way of another instance, which has proven itself. */
export function markHop(request: IncomingMessage, client: HopClient): void {
  clients.set(request, client);
}

/** The client of a request that another instance has passed on; undefined for all others. */
export function hopClientOf(request: IncomingMessage): HopClient | undefined {
  return clients.get(request);
}
