import type { IncomingMessage } from 'node:http';
import type { Writable } from 'node:stream';
import { atEndOfTurn } from '../../platform/concurrency/end-of-turn.ts';
import { startReading, stopReading } from '../../platform/undocumented/node-http.ts';
import { SentPieces } from '../../platform/undocumented/sent-pieces.ts';

/** Small pieces that are gathered before they are joined. */
const maxGathered = 64;

/** Joins the small pieces of one turn of the event loop. */
export class SmallPieces {
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
  const sent = new SentPieces(() => {
    if (!message.complete) startReading(socket);
  });
  const small = new SmallPieces(() => send(small.take()));

  function send(piece: Buffer | undefined): void {
    if (piece === undefined || !target.writable) return;
    const isTaken = target.write(piece, sent.sending(piece));
    if ((!isTaken || sent.isFull) && !message.complete) stopReading(socket);
  }

  message.on('data', (piece: Buffer) => {
    if (piece.length < SmallPieces.largeBytes) {
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
