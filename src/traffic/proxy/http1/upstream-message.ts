import type { Readable } from 'node:stream';
import { trimBlanks } from '../../../platform/http/trim-blanks.ts';

/** A request ready to be sent. */
export interface UpstreamRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names and values in turn; with `content-length` if the length of the body is known. */
  readonly headers: readonly string[];
  /** Further ones, which are sent last: the same list for many requests is read once, and must not be changed. */
  readonly addedHeaders?: readonly string[];
  body: Readable | null;
}

/** What the sender of a request hears of its answer; nothing more after the end, an error or `abort`. */
export interface UpstreamHandler {
  /** The request waits for a connection or is on one. */
  onRequestStart(control: ExchangeControl): void;
  /** The first bytes of the answer have come: the request cannot be sent once more. */
  onResponseStarted(): void;
  /** What the final answer will probably have in its head (RFC 8297). */
  onEarlyHints?(headers: ResponseHeaders): void;
  onResponseStart(status: number, headers: ResponseHeaders, reason: string): void;
  /** A piece of the body, whose memory is only lent until the call returns. */
  onResponseData(piece: Buffer): void;
  onResponseEnd(trailers?: ResponseHeaders): void;
  onResponseError(error: Error): void;
}

/** The sender's hold on a request under way. */
export interface ExchangeControl {
  /** Gives the exchange up; the handler hears nothing more. */
  abort(): void;
  /** Takes no more of the answer from the upstream until `resume`; a piece or two may still come. */
  pause(): void;
  resume(): void;
}

/** Bytes above ASCII are none of RFC 9112 §3.2, but browsers send them in paths, and they harm no framing. */
const invalidTarget = /[^\x21-\x7e\x80-\xff]/;
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Beside tab and visible characters, RFC 9110 §5.5 lets bytes above ASCII pass. */
const invalidValue = /[^\t\x20-\x7e\x80-\xff]/;
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** Their recipients take a body for granted (RFC 9110 §8.6). */
const methodsWithBody = new Set(['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH']);

/**
 * The head of a request as Latin-1 text, with the blank line at its end (RFC 9112 §3). `host` is sent when
 * the client named none. Throws ExchangeFailure `UPSTREAM_BAD_REQUEST` for what would break the framing.
 */
export function requestHead(
  { method, path, headers, addedHeaders, body }: UpstreamRequest,
  host: string,
): string {
  if (!knownMethods.has(method) && !token.test(method)) throw badRequest('the method');
  if (path === '' || invalidTarget.test(path)) throw badRequest('the path');
  let head = `${method} ${path} HTTP/1.1\r\n`;
  let hasHost = false;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? '';
    const value = headers[index + 1] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') hasHost = true;
    head += headerLine(name, value);
  }
  if (addedHeaders !== undefined) head += linesOf(addedHeaders);
  if (!hasHost) head += `Host: ${host}\r\n`;
  if (body !== null) head += hasLength(headers) ? '' : 'Transfer-Encoding: chunked\r\n';
  else if (methodsWithBody.has(method) && !hasLength(headers)) head += 'Content-Length: 0\r\n';
  return `${head}Connection: keep-alive\r\n\r\n`;
}

const linesByHeaders = new WeakMap<readonly string[], string>();

function linesOf(headers: readonly string[]): string {
  let lines = linesByHeaders.get(headers);
  if (lines === undefined) {
    lines = '';
    for (let index = 0; index + 1 < headers.length; index += 2) {
      lines += headerLine(headers[index] ?? '', headers[index + 1] ?? '');
    }
    // As one piece: what is put together of pieces is put together each time it is sent.
    lines = Buffer.from(lines, 'latin1').toString('latin1');
    linesByHeaders.set(headers, lines);
  }
  return lines;
}

function headerLine(name: string, value: string): string {
  if (invalidValue.test(value)) throw badRequest(`the header ${name}`);
  return `${name}: ${value}\r\n`;
}

/** Whether the length of the body is known, else it is sent in chunks (RFC 9112 §6.1). */
export function hasLength(headers: readonly string[]): boolean {
  return headers.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'content-length');
}

function badRequest(what: string): ExchangeFailure {
  return new ExchangeFailure('UPSTREAM_BAD_REQUEST', `HTTP cannot carry ${what} of the request.`);
}

/** Response headers by lower-case name; values of a repeated name stand in a list. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Status line and headers of an answer (RFC 9112 §4, §5). */
export interface ResponseHead {
  /** 100 to 999. */
  readonly status: number;
  readonly reason: string;
  readonly headers: ResponseHeaders;
  /** How the end of the body is known (RFC 9112 §6.3); of a body that the request or status rules out, 0. */
  readonly framing: Framing;
  /** Whether the connection can carry another exchange after this one (RFC 9112 §9.3). */
  readonly isPersistent: boolean;
  /** For how long the upstream says it keeps an idle connection open. */
  readonly keepAliveMs: number | undefined;
}

/** The length of a body in bytes, `chunked`, or `close` where it ends with the connection. */
export type Framing = number | 'chunked' | 'close';

/** RFC 9112 §4, and that a status is no less than 100. */
const statusLine = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const contentLength = /^\d{1,15}$/;
const closingOption = /(?:^|,)[\t ]*close[\t ]*(?:,|$)/i;
const keepingOption = /(?:^|,)[\t ]*keep-alive[\t ]*(?:,|$)/i;
const keepAliveTimeout = /(?:^|[,\s])timeout=(\d{1,6})(?:$|[,\s])/i;

/** Spellings of names that came before, checked and in lower case; applications use few. */
const knownNames = new Map<string, string>();
const maxKnownNames = 1_000;

/**
 * Reads a response head without the blank line at its end, as Latin-1 text. Strict where leniency lets two
 * readers disagree on where an answer ends (RFC 9112 §11.2): a bare CR or LF, a folded line, a space before
 * the colon, two lengths, a length beside a transfer encoding, and any encoding but `chunked` are refused.
 * Throws ExchangeFailure `UPSTREAM_BAD_RESPONSE`.
 */
export function parseResponseHead(text: string, requestMethod: string): ResponseHead {
  const firstEnd = text.indexOf('\r\n');
  const firstLine = firstEnd === -1 ? text : text.slice(0, firstEnd);
  const status = statusOf(firstLine);
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let at = firstEnd; at !== -1; ) {
    const next = text.indexOf('\r\n', at + 2);
    addHeader(headers, next === -1 ? text.slice(at + 2) : text.slice(at + 2, next));
    at = next;
  }
  const framing = framingOf(headers, status, requestMethod);
  return {
    status,
    reason: firstLine.slice(13),
    headers,
    framing,
    isPersistent: framing !== 'close' && isPersistent(headers['connection'], firstLine),
    keepAliveMs: keepAliveMsOf(headers['keep-alive']),
  };
}

function statusOf(line: string): number {
  const status = statusLine.exec(line)?.[1];
  if (status === undefined) throw badResponse('the status line is not one of HTTP/1.1');
  return Number(status);
}

/** Reads one line of a head or of a trailer section (RFC 9112 §5, §7.1.2); throws for what is none. */
export function addHeader(headers: Record<string, string | string[]>, line: string): void {
  const colon = line.indexOf(':');
  const name = nameOf(colon === -1 ? '' : line.slice(0, colon));
  const value = trimBlanks(line.slice(colon + 1));
  if (invalidValue.test(value)) throw badResponse(`the header ${name} holds control characters`);
  const former = headers[name];
  if (former === undefined) headers[name] = value;
  else if (typeof former === 'string') headers[name] = [former, value];
  else former.push(value);
}

function nameOf(spelling: string): string {
  const known = knownNames.get(spelling);
  if (known !== undefined) return known;
  if (!token.test(spelling)) throw badResponse('a header line has no valid name');
  const name = spelling.toLowerCase();
  if (knownNames.size < maxKnownNames && name.length <= 64) knownNames.set(spelling, name);
  return name;
}

function framingOf(headers: ResponseHeaders, status: number, requestMethod: string): Framing {
  const { 'transfer-encoding': encoding, 'content-length': length } = headers;
  if (encoding !== undefined && length !== undefined) {
    throw badResponse('it has both Content-Length and Transfer-Encoding');
  }
  if (length !== undefined && (typeof length !== 'string' || !contentLength.test(length))) {
    throw badResponse('Content-Length is not one number');
  }
  if (encoding !== undefined && String(encoding).toLowerCase() !== 'chunked') {
    throw badResponse('Transfer-Encoding is not chunked');
  }
  if (requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304) return 0;
  if (encoding !== undefined) return 'chunked';
  return length === undefined ? 'close' : Number(length);
}

function isPersistent(connection: string | string[] | undefined, firstLine: string): boolean {
  const options = String(connection ?? '');
  if (firstLine.startsWith('HTTP/1.0')) return keepingOption.test(options);
  return options === '' || options === 'keep-alive' || !closingOption.test(options);
}

function keepAliveMsOf(header: string | string[] | undefined): number | undefined {
  if (header === undefined) return undefined;
  const seconds = keepAliveTimeout.exec(String(header))?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}

/** The refusal of an answer that is none. */
export function badResponse(reason: string): ExchangeFailure {
  return new ExchangeFailure(
    'UPSTREAM_BAD_RESPONSE',
    `The answer of the upstream is not valid: ${reason}.`,
  );
}

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

/** How an exchange with an upstream can fail beside the errors of its socket. */
export type ExchangeFailureCode =
  /** The upstream closed the connection before its answer was whole. */
  | 'UPSTREAM_CLOSED'
  /** The pool was closed. */
  | 'UPSTREAM_GONE'
  | 'UPSTREAM_CONNECT_TIMEOUT'
  | 'UPSTREAM_HEADERS_TIMEOUT'
  | 'UPSTREAM_BODY_TIMEOUT'
  /** What came is no HTTP/1.1 answer. */
  | 'UPSTREAM_BAD_RESPONSE'
  /** The request holds what HTTP/1.1 cannot carry. */
  | 'UPSTREAM_BAD_REQUEST';

/** Why an exchange with an upstream failed; the message is for the log. */
export class ExchangeFailure extends Error {
  override readonly name = 'ExchangeFailure';
  readonly code: ExchangeFailureCode;

  constructor(code: ExchangeFailureCode, message: string) {
    super(message);
    this.code = code;
  }
}
