import {
  addHeader,
  badResponse,
  parseResponseHead,
  type ResponseHead,
  type ResponseHeaders,
} from './upstream-message.ts';

/** What a reader tells of an answer. */
export interface ResponseListener {
  /** The head of the final answer. */
  onHead(head: ResponseHead): void;
  /** An interim answer of status 103 (RFC 8297); others (RFC 9110 §15.2) are left out. */
  onEarlyHints?(head: ResponseHead): void;
  /** What one read holds of the body, all its chunks together; the memory is only lent until the call returns. */
  onBody(piece: Buffer): void;
  onEnd(trailers?: ResponseHeaders): void;
}

/** Some applications answer with header blocks far larger than a request may have. */
const maxHeadBytes = 64 * 1024;
/** Size and extensions of a chunk (RFC 9112 §7.1.1). */
const maxChunkLineBytes = 4 * 1024;
const maxInterimAnswers = 32;
const maxPlainDigits = 8;
const protocol = 'HTTP/1.';
const chunkSize = /^([\dA-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

/** The values of hexadecimal digits by their code; 255 for what is none. */
const hexValues = new Uint8Array(256).fill(255);
for (const digit of '0123456789abcdefABCDEF') {
  hexValues[digit.charCodeAt(0)] = Number.parseInt(digit, 16);
}
/** Up to here, moving bytes one by one is quicker than asking for it. */
const fewBytes = 16;

type State = 'idle' | 'head' | 'length' | 'close' | 'chunk' | 'chunk-end' | 'size' | 'trailers';

/**
 * Reads the answers on one connection to an upstream, piece by piece as they arrive (RFC 9112 §6, §7).
 * The upstream is a program of a user: it may send anything, at any pace.
 */
export class ResponseReader {
  readonly #listener: ResponseListener;
  #state: State = 'idle';
  #method = '';
  /** Bytes still to come of the body or of the chunk. */
  #left = 0;
  /** Begins with what has come of a head or of a line whose end has not; has room for more. */
  #begun: Buffer | undefined;
  #begunBytes = 0;
  /** Where in what is read now the body stands that the listener has not heard of. */
  #bodyStart = 0;
  #bodyEnd = 0;
  #interimAnswers = 0;
  #trailerBytes = 0;
  #trailers: Record<string, string | string[]> | undefined;
  #chunks = 0;
  #isStopped = false;

  constructor(listener: ResponseListener) {
    this.#listener = listener;
  }

  /** Whether an answer has begun and is not whole yet, or is awaited. */
  get isBusy(): boolean {
    return this.#state !== 'idle';
  }

  /** How many chunks began in the last read: what it cost, rather than its bytes. */
  get chunksRead(): number {
    return this.#chunks;
  }

  /** Awaits the answer to a request. */
  begin(method: string): void {
    this.#method = method;
    this.#state = 'head';
    this.#interimAnswers = 0;
    this.#trailerBytes = 0;
    this.#trailers = undefined;
  }

  /** Reads nothing more, not even the rest of what `read` is at. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Reads what has come, whose memory it may write to until it returns. Throws ExchangeFailure `UPSTREAM_BAD_RESPONSE` for what is no answer, and for
   * bytes after the end of one, which no request has asked for.
   */
  read(data: Buffer): void {
    this.#chunks = 0;
    try {
      this.#readAll(data);
    } finally {
      this.#tellBody(data);
    }
  }

  #readAll(data: Buffer): void {
    let at = 0;
    while (at < data.length && !this.#isStopped) {
      switch (this.#state) {
        case 'idle':
          throw badResponse('it goes on after its end');
        case 'head':
          at = this.#readHead(data, at);
          break;
        case 'length':
        case 'chunk':
          at = this.#readBody(data, at);
          break;
        case 'close':
          this.#addToBody(data, at, data.length);
          return;
        case 'size':
          at = this.#readPlainSize(data, at);
          break;
        case 'chunk-end':
          if (data[at] === 0x0d && data[at + 1] === 0x0a && this.#begunBytes === 0) {
            this.#state = 'size';
            at += 2;
            break;
          }
          at = this.#readLine(data, at);
          break;
        case 'trailers':
          at = this.#readLine(data, at);
          break;
      }
    }
  }

  /** The upstream has ended the connection: whether that is the end of the answer under way. */
  end(): boolean {
    if (this.#state !== 'close' || this.#isStopped) return false;
    this.#finish();
    return true;
  }

  #readHead(data: Buffer, from: number): number {
    const found = this.#take(data, { from, mark: '\r\n\r\n', maxBytes: maxHeadBytes });
    if (found === undefined) {
      // Something else than HTTP may never send a blank line, and wait for an answer of its own.
      const beginning =
        this.#begun?.toString('latin1', 0, Math.min(protocol.length, this.#begunBytes)) ?? '';
      if (!protocol.startsWith(beginning)) throw badResponse('it does not begin as HTTP/1.1 does');
      return data.length;
    }
    const head = parseResponseHead(found.text, this.#method);
    if (head.status < 200) {
      this.#interimAnswers += 1;
      if (head.status === 101 || this.#interimAnswers > maxInterimAnswers) {
        throw badResponse(`it has the status ${head.status} unasked`);
      }
      if (head.status === 103) this.#listener.onEarlyHints?.(head);
      return found.after;
    }
    const { framing } = head;
    this.#left = typeof framing === 'number' ? framing : 0;
    this.#state = stateOf(framing);
    this.#listener.onHead(head);
    if (framing === 0 && !this.#isStopped) this.#end(data);
    return found.after;
  }

  #readBody(data: Buffer, from: number): number {
    const to = Math.min(data.length, from + this.#left);
    this.#left -= to - from;
    this.#addToBody(data, from, to);
    if (this.#left > 0) return to;
    if (this.#state === 'chunk') this.#state = 'chunk-end';
    else this.#end(data);
    return to;
  }

  /** Puts a piece beside those before it: there is room, since what was between them has been read. */
  #addToBody(data: Buffer, from: number, to: number): void {
    if (this.#bodyEnd === this.#bodyStart) {
      this.#bodyStart = from;
      this.#bodyEnd = to;
      return;
    }
    if (to - from > fewBytes) {
      data.copyWithin(this.#bodyEnd, from, to);
      this.#bodyEnd += to - from;
      return;
    }
    for (let at = from; at < to; at += 1) {
      data[this.#bodyEnd] = data[at] ?? 0;
      this.#bodyEnd += 1;
    }
  }

  /**
   * Hands on all the body that was read. One by one, an upstream's chunks of one byte would each cost the
   * client's side some thousand bytes.
   */
  #tellBody(data: Buffer): void {
    const [start, end] = [this.#bodyStart, this.#bodyEnd];
    this.#bodyStart = 0;
    this.#bodyEnd = 0;
    if (end === start || this.#isStopped) return;
    this.#listener.onBody(end - start === data.length ? data : data.subarray(start, end));
  }

  /** Reads a line with nothing but the size of a chunk at once: there may be ten thousand in one read. */
  #readPlainSize(data: Buffer, from: number): number {
    this.#chunks += 1;
    let size = 0;
    let at = from;
    for (; at < from + maxPlainDigits; at += 1) {
      const value = hexValues[data[at] ?? 0] ?? 255;
      if (value === 255) break;
      size = size * 16 + value;
    }
    const isPlain = at > from && data[at] === 0x0d && data[at + 1] === 0x0a;
    if (!isPlain || this.#begunBytes > 0) return this.#readLine(data, from);
    this.#beginChunk(size);
    return at + 2;
  }

  #beginChunk(size: number): void {
    this.#left = size;
    this.#state = size === 0 ? 'trailers' : 'chunk';
  }

  #readLine(data: Buffer, from: number): number {
    const maxBytes = this.#state === 'trailers' ? maxHeadBytes : maxChunkLineBytes;
    const found = this.#take(data, { from, mark: '\r\n', maxBytes });
    if (found === undefined) return data.length;
    const { text, after } = found;
    if (this.#state === 'chunk-end') {
      if (text !== '') throw badResponse('a chunk is longer than its size');
      this.#state = 'size';
    } else if (this.#state === 'size') {
      const size = chunkSize.exec(text)?.[1];
      if (size === undefined) throw badResponse('a chunk has no valid size');
      this.#beginChunk(Number.parseInt(size, 16));
    } else if (text === '') {
      this.#end(data);
    } else {
      this.#trailerBytes += text.length;
      if (this.#trailerBytes > maxHeadBytes) throw badResponse('its trailers are too large');
      this.#trailers ??= Object.create(null) as Record<string, string | string[]>;
      addHeader(this.#trailers, text);
    }
    return after;
  }

  /** The text up to a mark, with what came of it before; undefined while the mark has not come. */
  #take(
    data: Buffer,
    { from, mark, maxBytes }: { from: number; mark: string; maxBytes: number },
  ): { readonly text: string; readonly after: number } | undefined {
    const before = this.#begunBytes;
    if (before === 0) {
      const end = data.indexOf(mark, from, 'latin1');
      if (end !== -1 && end - from <= maxBytes) {
        return { text: data.toString('latin1', from, end), after: end + mark.length };
      }
    }
    const all = this.#keep(data.subarray(from));
    const end = all.indexOf(mark, Math.max(0, before - mark.length + 1), 'latin1');
    // A server that ends lines like that never sends the mark, and waits for the next request.
    if (end === -1 && hasBareLineFeed(all, before)) {
      throw badResponse('a line ends with a bare line feed');
    }
    if (end > maxBytes || (end === -1 && all.length > maxBytes + mark.length)) {
      throw badResponse('its head, or a line between its chunks, is too large');
    }
    if (end === -1) return undefined;
    this.#begun = undefined;
    this.#begunBytes = 0;
    return { text: all.toString('latin1', 0, end), after: from + end + mark.length - before };
  }

  /**
   * All that has come of a head or line, with what has come now. The memory doubles, so that one which comes
   * byte by byte is not copied for each byte.
   */
  #keep(added: Buffer): Buffer {
    const before = this.#begunBytes;
    const bytes = before + added.length;
    let kept = this.#begun;
    if (kept === undefined || kept.length < bytes) {
      const larger = Buffer.allocUnsafe(Math.max(bytes, 2 * (kept?.length ?? 0)));
      kept?.copy(larger, 0, 0, before);
      kept = larger;
      this.#begun = kept;
    }
    added.copy(kept, before);
    this.#begunBytes = bytes;
    return kept.subarray(0, bytes);
  }

  #end(data: Buffer): void {
    this.#tellBody(data);
    if (this.#isStopped) return;
    this.#finish();
  }

  #finish(): void {
    this.#state = 'idle';
    this.#listener.onEnd(this.#trailers);
  }
}

function hasBareLineFeed(bytes: Buffer, from: number): boolean {
  for (let at = bytes.indexOf('\n', from); at !== -1; at = bytes.indexOf('\n', at + 1)) {
    if (bytes[at - 1] !== 0x0d) return true;
  }
  return false;
}

function stateOf(framing: ResponseHead['framing']): State {
  if (framing === 'chunked') return 'size';
  return framing === 'close' ? 'close' : 'length';
}
