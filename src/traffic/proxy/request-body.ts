import type { IncomingMessage } from 'node:http';
import { Readable, type Writable } from 'node:stream';
import { atEndOfTurn } from '../../platform/concurrency/turns.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { startReading, stopReading } from '../../platform/undocumented/node-http.ts';
import { SentChunks } from '../../platform/undocumented/sent-chunks.ts';

export interface RequestBodyOptions {
  /** The largest body that passes; 0 for any. */
  readonly limitBytes: number;
  /** Up to here a copy is kept, so that the body can be sent once more; 0 for none. */
  readonly keepBytes: number;
  readonly onTraffic: () => void;
}

/** What a body had taken from its request when it was given up. */
interface Taken {
  readonly pieces: readonly Buffer[];
  readonly hasEnded: boolean;
}

/**
 * The body of a request on its way upstream. It stands between the request and the upstream client,
 * which destroys the body it was given when the upstream fails: destroying the request itself would
 * take the client's connection along, and with it the answer. It takes nothing before it is read. Small
 * pieces that come together are joined, and while the upstream does not take them, the client's connection is
 * not read: by itself, each chunk of one byte costs some hundred.
 */
export class RequestBody extends Readable {
  readonly #request: IncomingMessage;
  readonly #options: RequestBodyOptions;
  #bytesTaken = 0;
  #hasEnded = false;
  readonly #small = new SmallChunks(() => this.#passOn(this.#small.take()));
  /** Copies of all pieces passed on so far; undefined once they are too many or no longer wanted. */
  #kept: Buffer[] | undefined = [];
  /** What a former body took, to be sent before the rest. */
  #former: Taken | undefined;
  #isAttached = false;

  constructor(request: IncomingMessage, options: RequestBodyOptions) {
    super({ highWaterMark: 1 });
    this.#request = request;
    this.#options = options;
    // The reader of the body hears of errors by its own listener; after it has left, no one needs to.
    this.on('error', () => {});
    request.on('close', this.#abandon);
  }

  /** Whether nothing of the request has been sent yet: its head is sent with the first piece. */
  get isUntouched(): boolean {
    return this.#bytesTaken === 0 && !this.#hasEnded;
  }

  /** Gives this body up for one that sends the same once more; undefined when it is too late for that. */
  again(): RequestBody | undefined {
    this.destroy();
    const taken = this.#former ?? (this.#kept && { pieces: this.#kept, hasEnded: this.#hasEnded });
    // A request that was read to its end is destroyed by Node, and nothing more is wanted of it.
    if (taken === undefined || (this.#request.destroyed && !taken.hasEnded)) return undefined;
    const body = new RequestBody(this.#request, this.#options);
    body.#former = taken;
    return body;
  }

  /** Lets the copies go: the upstream has begun to answer. */
  forget(): void {
    this.#kept = undefined;
  }

  override _read(): void {
    const former = this.#former;
    this.#former = undefined;
    for (const piece of former?.pieces ?? []) this.#take(piece);
    if (former?.hasEnded === true) {
      this.#end();
      return;
    }
    if (!this.#isAttached) {
      this.#isAttached = true;
      this.#request.on('data', this.#take).on('end', this.#end);
    }
    startReading(this.#request.socket);
    this.#request.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#request.off('data', this.#take).off('end', this.#end).off('close', this.#abandon);
    this.#request.pause();
    if (!this.#request.complete) stopReading(this.#request.socket);
    callback(error);
  }

  readonly #take = (chunk: Buffer): void => {
    this.#bytesTaken += chunk.length;
    this.#options.onTraffic();
    const { limitBytes } = this.#options;
    if (limitBytes > 0 && this.#bytesTaken > limitBytes) {
      this.destroy(bodyTooLarge(limitBytes));
      return;
    }
    if (chunk.length < SmallChunks.largeBytes) {
      this.#small.add(chunk);
      return;
    }
    this.#passOn(this.#small.take());
    this.#passOn(chunk);
  };

  #passOn(piece: Buffer | undefined): void {
    if (piece === undefined || this.destroyed) return;
    // A copy, because the memory of a piece is given back once it is sent.
    if (this.#bytesTaken > this.#options.keepBytes) this.#kept = undefined;
    else this.#kept?.push(Buffer.from(piece));
    if (!this.push(piece)) stopReading(this.#request.socket);
  }

  readonly #end = (): void => {
    this.#passOn(this.#small.take());
    // Only by reading on is it noticed that the client leaves.
    if (this.#request.complete && !this.#request.destroyed) startReading(this.#request.socket);
    this.#hasEnded = true;
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
  return new HubError(
    'payload_too_large',
    text`The request body is larger than ${limitBytes} bytes.`,
  );
}

/** How long the upload of a refused request is read, so that the refusal arrives. */
const discardGraceMs = 5_000;

/**
 * Reads the rest of an unwanted upload, so that the client gets to reading the answer and the
 * connection can carry its next request. After a grace the connection is given up.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.destroyed) return;
  startReading(request.socket);
  if (request.complete) return;
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), discardGraceMs);
  timer.unref();
  const stop = () => clearTimeout(timer);
  request.once('end', stop).once('close', stop);
}

/** Small pieces that are gathered before they are joined. */
const maxGathered = 64;

/** Joins the small pieces of one turn of the event loop. */
export class SmallChunks {
  /** From here on, a piece is as well sent by itself. */
  static readonly largeBytes = 4 * 1024;
  readonly #onEndOfTurn: () => void;
  #pieces: Buffer[] = [];

  /** `onEndOfTurn` is called in each turn that has added something. */
  constructor(onEndOfTurn: () => void) {
    this.#onEndOfTurn = onEndOfTurn;
  }

  add(piece: Buffer): void {
    this.#pieces.push(piece);
    if (this.#pieces.length === 1) atEndOfTurn(this.#onEndOfTurn, undefined);
    else if (this.#pieces.length === maxGathered) this.#pieces = [Buffer.concat(this.#pieces)];
  }

  /** All that was added since the last call, as one piece. */
  take(): Buffer | undefined {
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces.length > 1 ? Buffer.concat(pieces) : pieces[0];
  }
}

/**
 * Sends the body of a message on, and ends the target with it. While the target does not take it, the message's
 * connection is not read: of chunks of one byte, a stream would take 64 KiB, which cost some ten megabytes. A message
 * that breaks off destroys the target; the message of a target that is closed is the caller's to destroy.
 */
export function relayBody(message: IncomingMessage, target: Writable): void {
  const { socket } = message;
  const sent = new SentChunks(() => {
    if (!message.complete) startReading(socket);
  });
  const small = new SmallChunks(() => send(small.take()));

  function send(piece: Buffer | undefined): void {
    if (piece === undefined || !target.writable) return;
    const isTaken = target.write(piece, sent.sending(piece));
    if ((!isTaken || sent.isFull) && !message.complete) stopReading(socket);
  }

  message.on('data', (piece: Buffer) => {
    if (piece.length < SmallChunks.largeBytes) {
      small.add(piece);
      return;
    }
    send(small.take());
    send(piece);
  });
  message.once('end', () => {
    send(small.take());
    startReading(socket);
    target.end();
  });
  message.once('close', () => {
    if (!message.complete) target.destroy();
  });
}
