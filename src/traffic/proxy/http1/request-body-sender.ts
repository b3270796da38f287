import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { SentChunks } from '../../../platform/undocumented/sent-chunks.ts';

/**
 * Sends a request with its body, as fast as the upstream takes it. The head goes with the first chunk, so
 * that of a request whose client never sends a body nothing has been sent.
 */
export class RequestBodySender {
  readonly #socket: Socket;
  readonly #body: Readable;
  readonly #head: string;
  readonly #isChunked: boolean;
  readonly #onChunk: () => void;
  readonly #fail: (error: Error) => void;
  readonly #sentChunks = new SentChunks(() => this.#allSent());
  #hasSentHead = false;
  /** Whether the upstream has to take what was sent before more is asked of the client. */
  #isPaused = false;
  #isDone = false;

  constructor(options: {
    readonly socket: Socket;
    readonly body: Readable;
    readonly head: string;
    /** Whether the head announces chunks (RFC 9112 §7.1) instead of a length. */
    readonly isChunked: boolean;
    /** Called whenever something has been sent or taken. */
    readonly onChunk: () => void;
    readonly onFailure: (error: Error) => void;
  }) {
    this.#socket = options.socket;
    this.#body = options.body;
    this.#head = options.head;
    this.#isChunked = options.isChunked;
    this.#onChunk = options.onChunk;
    this.#fail = options.onFailure;
    this.#body
      .on('error', this.#fail)
      .on('close', this.#closed)
      .on('end', this.#end)
      .on('data', this.#send);
  }

  /** Whether the whole request has been handed to the socket. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether it is the client that the rest of the request is awaited from. */
  get isAwaitingBody(): boolean {
    return !this.#isDone && !this.#isPaused;
  }

  /** Sends nothing more. */
  stop(): void {
    this.#isPaused = false;
    this.#body
      .off('data', this.#send)
      .off('end', this.#end)
      .off('close', this.#closed)
      .off('error', this.#fail);
  }

  readonly #send = (chunk: Buffer): void => {
    const socket = this.#socket;
    socket.cork();
    this.#sendHead();
    if (this.#isChunked) socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
    let isTaken = socket.write(chunk, this.#sentChunks.sending(chunk));
    if (this.#isChunked) isTaken = socket.write('\r\n', 'latin1');
    socket.uncork();
    this.#onChunk();
    if (isTaken && !this.#sentChunks.isFull) return;
    this.#isPaused = true;
    this.#body.pause();
  };

  #allSent(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#onChunk();
    this.#body.resume();
  }

  readonly #end = (): void => {
    this.#sendHead();
    if (this.#isChunked) this.#socket.write('0\r\n\r\n', 'latin1');
    this.#isDone = true;
    this.stop();
    this.#onChunk();
  };

  readonly #closed = (): void => {
    this.#fail(this.#body.errored ?? new Error('The body of the request broke off.'));
  };

  #sendHead(): void {
    if (this.#hasSentHead) return;
    this.#hasSentHead = true;
    this.#socket.write(this.#head, 'latin1');
  }
}
