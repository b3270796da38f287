import type { ExchangeControl, UpstreamHandler, UpstreamRequest } from './upstream-request.ts';

/** What has an exchange: the queue of its pool first, then a connection. */
export interface ExchangeCarrier {
  /** Gives up the exchange, whose handler is to hear nothing more. */
  abandon(exchange: PendingExchange): void;
  pause(): void;
  resume(): void;
}

/** A request that waits for a connection or is on one. */
export class PendingExchange implements ExchangeControl {
  readonly request: UpstreamRequest;
  readonly handler: UpstreamHandler;
  /** The head of the request as Latin-1 text. */
  readonly head: string;
  carrier: ExchangeCarrier;

  constructor(options: {
    readonly request: UpstreamRequest;
    readonly handler: UpstreamHandler;
    readonly head: string;
    readonly carrier: ExchangeCarrier;
  }) {
    this.request = options.request;
    this.handler = options.handler;
    this.head = options.head;
    this.carrier = options.carrier;
  }

  abort(): void {
    this.carrier.abandon(this);
  }

  pause(): void {
    this.carrier.pause();
  }

  resume(): void {
    this.carrier.resume();
  }
}
