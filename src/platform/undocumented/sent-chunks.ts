/** Below this, the collector of young objects is as quick. */
const minBytes = 4 * 1024;

/** Each chunk costs some hundred bytes beside what is in it, so that many small ones fill memory as a few large ones do. */
const maxChunks = 256;

type WriteCallback = (error?: Error | null) => void;

/**
 * The chunks of body that are on their way into one stream. As soon as the stream has sent one, its
 * memory goes back to the allocator, which hands it out again for the next one, still in the processor's
 * cache. Left to the collector, which does not see what a buffer holds outside the heap, a hundred
 * megabytes pile up before it looks: twice the CPU time for large bodies, and memory that never shrinks.
 */
export class SentChunks {
  readonly #underWay: Uint8Array[] = [];
  readonly #onAllSent: () => void;

  /** `onAllSent` is called whenever nothing is under way any more. */
  constructor(onAllSent: () => void) {
    this.#onAllSent = onAllSent;
  }

  /** Whether so many chunks are under way that no more should be written until all are sent. */
  get isFull(): boolean {
    return this.#underWay.length >= maxChunks;
  }

  /** A copy of a chunk that is only lent, to be sent. */
  static copyOf(chunk: Uint8Array): Buffer {
    if (chunk.byteLength < minBytes) return Buffer.from(chunk);
    const copy = Buffer.allocUnsafeSlow(chunk.byteLength);
    copy.set(chunk);
    return copy;
  }

  /**
   * Notes a chunk and returns the callback for the `write` that sends it. After the callback the chunk is
   * empty, unless it is small or shares its memory with others.
   */
  sending(chunk: Uint8Array): WriteCallback {
    this.#underWay.push(chunk);
    return this.#sent;
  }

  /** A stream calls back in the order of its writes. */
  readonly #sent: WriteCallback = (error) => {
    const chunk = this.#underWay.shift();
    // After a failure the system may still be reading it.
    if (!error && chunk !== undefined) giveBack(chunk);
    if (this.#underWay.length === 0) this.#onAllSent();
  };
}

function giveBack({ buffer, byteLength }: Uint8Array): void {
  const isAlone = byteLength === buffer.byteLength;
  if (isAlone && byteLength >= minBytes && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
