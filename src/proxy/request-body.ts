import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { HubError } from '../errors.ts';

/**
 * The body of a request on its way upstream. It stands between the request and the upstream client,
 * which destroys the body it was given when the upstream fails: destroying the request itself would
 * take the client's connection along, and with it the answer.
 */
export class RequestBody extends Readable {
  /** Bytes taken from the client so far. */
  bytesTaken = 0;
  readonly #request: IncomingMessage;
  readonly #limitBytes: number;
  readonly #onTraffic: () => void;

  constructor(
    request: IncomingMessage,
    options: { readonly limitBytes: number; readonly onTraffic: () => void },
  ) {
    super();
    this.#request = request;
    this.#limitBytes = options.limitBytes;
    this.#onTraffic = options.onTraffic;
    // Whoever uses the body hears of errors by its own listener; after it has let go, nobody needs to.
    this.on('error', () => {});
    request.on('data', this.#take).on('end', this.#end).on('close', this.#abandon);
  }

  override _read(): void {
    this.#request.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#request.off('data', this.#take).off('end', this.#end).off('close', this.#abandon);
    this.#request.pause();
    callback(error);
  }

  readonly #take = (chunk: Buffer): void => {
    this.bytesTaken += chunk.length;
    this.#onTraffic();
    if (this.#limitBytes > 0 && this.bytesTaken > this.#limitBytes) {
      this.destroy(bodyTooLarge(this.#limitBytes));
    } else if (!this.push(chunk)) {
      this.#request.pause();
    }
  };

  readonly #end = (): void => {
    this.push(null);
  };

  readonly #abandon = (): void => {
    if (!this.#request.complete) this.destroy(new Error('the client left during its upload'));
  };
}

/** Whether a request has a body: a length above zero or a transfer encoding (RFC 9112 §6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  const length = headers['content-length'];
  return length !== undefined && Number(length) > 0;
}

/** The refusal of a body above the limit. */
export function bodyTooLarge(limitBytes: number): HubError {
  return new HubError('payload_too_large', `The request body is larger than ${limitBytes} bytes.`);
}

/**
 * Reads the rest of an upload that nobody wants, so that the client gets to reading the answer and the
 * connection can carry its next request. After the grace the connection is given up.
 */
export function discardBody(request: IncomingMessage, graceMs: number): void {
  if (request.complete || request.destroyed) return;
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), graceMs);
  timer.unref();
  const stop = () => clearTimeout(timer);
  request.once('end', stop).once('close', stop);
}
