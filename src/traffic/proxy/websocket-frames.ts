/**
 * Follows where the frames of a WebSocket stream end (RFC 6455 §5.2) without reading what they say, so
 * that a frame of our own can be put between two of them.
 */
export class FrameBoundary {
  /** Bytes of the frame's header read so far; 0 between frames. */
  #headerBytes = 0;
  #lengthBytesLeft = 0;
  #maskBytesLeft = 0;
  #payloadLeft = 0;
  /** Whether a frame with data has begun, so no ping, pong or close (RFC 6455 §5.5). */
  hasData = false;

  /** Whether the last frame is complete. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && this.#payloadLeft === 0;
  }

  push(chunk: Buffer): void {
    let index = 0;
    while (index < chunk.length) {
      if (this.#headerBytes === 0 && this.#payloadLeft > 0) {
        const skipped = Math.min(this.#payloadLeft, chunk.length - index);
        this.#payloadLeft -= skipped;
        index += skipped;
      } else {
        this.#readHeaderByte(chunk[index] ?? 0);
        index += 1;
      }
    }
  }

  #readHeaderByte(byte: number): void {
    this.#headerBytes += 1;
    if (this.#headerBytes === 1) {
      this.hasData ||= (byte & 0x08) === 0;
      return;
    }
    if (this.#headerBytes === 2) {
      const length = byte & 0x7f;
      this.#lengthBytesLeft = length === 126 ? 2 : length === 127 ? 8 : 0;
      this.#payloadLeft = this.#lengthBytesLeft === 0 ? length : 0;
      this.#maskBytesLeft = (byte & 0x80) === 0 ? 0 : 4;
    } else if (this.#lengthBytesLeft > 0) {
      this.#payloadLeft = this.#payloadLeft * 256 + byte;
      this.#lengthBytesLeft -= 1;
    } else {
      this.#maskBytesLeft -= 1;
    }
    if (this.#lengthBytesLeft === 0 && this.#maskBytesLeft === 0) this.#headerBytes = 0;
  }
}

/** An unmasked close frame (RFC 6455 §5.5.1), as a server sends it. The reason is ASCII. */
export function closeFrame(code: number, reason: string): Buffer {
  const payload = Buffer.from(`\0\0${reason}`, 'latin1').subarray(0, 125);
  payload.writeUInt16BE(code, 0);
  return Buffer.concat([Buffer.from([0x88, payload.length]), payload]);
}
