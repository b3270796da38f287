import {
  badResponse,
  checkTrailer,
  parseResponseHead,
  type ResponseHead,
} from './response-head.ts';

/** What a reader tells of an answer. */
export interface ResponseListener {
  /** The head of the final answer; interim ones (RFC 9110 §15.2) are left out. */
  onHead(head: ResponseHead): void;
  /** A piece of the body, whose memory is only lent until the call returns. */
  onBody(piece: Buffer): void;
  onEnd(): void;
}

/** Some applications answer with header blocks far larger than a request may have. */
const maxHeadBytes = 64 * 1024;
/** Size and extensions of a chunk (RFC 9112 §7.1.1). */
const maxChunkLineBytes = 4 * 1024;
const maxInterimAnswers = 32;
const protocol = 'HTTP/1.';
const chunkSize = /^([\dA-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

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
  /** The beginning of a head or of a line whose end has not come yet. */
  #begun: Buffer | undefined;
  #interimAnswers = 0;
  #trailerBytes = 0;
  #isStopped = false;

  constructor(listener: ResponseListener) {
    this.#listener = listener;
  }

  /** Whether an answer has begun and is not whole yet, or is awaited. */
  get isBusy(): boolean {
    return this.#state !== 'idle';
  }

  /** Awaits the answer to a request. */
  begin(method: string): void {
    this.#method = method;
    this.#state = 'head';
    this.#interimAnswers = 0;
    this.#trailerBytes = 0;
  }

  /** Reads nothing more, not even the rest of what `read` is at. */
  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Reads what has come. Throws ExchangeFailure `UPSTREAM_BAD_RESPONSE` for what is no answer, and for
   * bytes after the end of one, which no request has asked for.
   */
  read(data: Buffer): void {
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
          this.#listener.onBody(at === 0 ? data : data.subarray(at));
          return;
        case 'size':
        case 'chunk-end':
        case 'trailers':
          at = this.#readLine(data, at);
          break;
      }
    }
  }

  /** The upstream has ended the connection: whether that is the end of the answer under way. */
  end(): boolean {
    if (this.#state !== 'close' || this.#isStopped) return false;
    this.#end();
    return true;
  }

  #readHead(data: Buffer, from: number): number {
    const found = this.#take(data, { from, mark: '\r\n\r\n', mostBytes: maxHeadBytes });
    if (found === undefined) {
      // Something else than HTTP may never send a blank line, and wait for an answer of its own.
      const beginning = this.#begun?.toString('latin1', 0, protocol.length) ?? '';
      if (!protocol.startsWith(beginning)) throw badResponse('it does not begin as HTTP/1.1 does');
      return data.length;
    }
    const head = parseResponseHead(found.text, this.#method);
    if (head.status < 200) {
      this.#interimAnswers += 1;
      if (head.status === 101 || this.#interimAnswers > maxInterimAnswers) {
        throw badResponse(`it has the status ${head.status} unasked`);
      }
      return found.after;
    }
    const { framing } = head;
    this.#left = typeof framing === 'number' ? framing : 0;
    this.#state = stateOf(framing);
    this.#listener.onHead(head);
    if (framing === 0 && !this.#isStopped) this.#end();
    return found.after;
  }

  #readBody(data: Buffer, from: number): number {
    const to = Math.min(data.length, from + this.#left);
    this.#left -= to - from;
    this.#listener.onBody(from === 0 && to === data.length ? data : data.subarray(from, to));
    if (this.#left > 0 || this.#isStopped) return to;
    if (this.#state === 'chunk') this.#state = 'chunk-end';
    else this.#end();
    return to;
  }

  #readLine(data: Buffer, from: number): number {
    const mostBytes = this.#state === 'trailers' ? maxHeadBytes : maxChunkLineBytes;
    const found = this.#take(data, { from, mark: '\r\n', mostBytes });
    if (found === undefined) return data.length;
    const { text, after } = found;
    if (this.#state === 'chunk-end') {
      if (text !== '') throw badResponse('a chunk is longer than its size');
      this.#state = 'size';
    } else if (this.#state === 'size') {
      const size = chunkSize.exec(text)?.[1];
      if (size === undefined) throw badResponse('a chunk has no valid size');
      this.#left = Number.parseInt(size, 16);
      this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    } else if (text === '') {
      this.#end();
    } else {
      this.#trailerBytes += text.length;
      if (this.#trailerBytes > maxHeadBytes) throw badResponse('its trailers are too large');
      checkTrailer(text);
    }
    return after;
  }

  /** The text up to a mark, with what came of it before; undefined while the mark has not come. */
  #take(
    data: Buffer,
    { from, mark, mostBytes }: { from: number; mark: string; mostBytes: number },
  ): { readonly text: string; readonly after: number } | undefined {
    const begun = this.#begun;
    if (begun === undefined) {
      const end = data.indexOf(mark, from, 'latin1');
      if (end !== -1 && end - from <= mostBytes) {
        return { text: data.toString('latin1', from, end), after: end + mark.length };
      }
    }
    const all =
      begun === undefined ? data.subarray(from) : Buffer.concat([begun, data.subarray(from)]);
    const searchFrom = Math.max(0, (begun?.length ?? 0) - mark.length + 1);
    const end = all.indexOf(mark, searchFrom, 'latin1');
    // Whoever ends lines like that never sends the mark, and waits for the next request.
    if (end === -1 && hasBareLineFeed(all, begun?.length ?? 0)) {
      throw badResponse('a line ends with a bare line feed');
    }
    if (end > mostBytes || (end === -1 && all.length > mostBytes + mark.length)) {
      throw badResponse('its head, or a line between its chunks, is too large');
    }
    if (end === -1) {
      this.#begun = begun === undefined ? Buffer.from(all) : all;
      return undefined;
    }
    this.#begun = undefined;
    const after = from + end + mark.length - (begun?.length ?? 0);
    return { text: all.toString('latin1', 0, end), after };
  }

  #end(): void {
    this.#state = 'idle';
    this.#listener.onEnd();
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
