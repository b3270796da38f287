import { trimBlanks } from '../../../platform/http/trim-blanks.ts';
import { ExchangeFailure } from './exchange-failure.ts';

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

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Beside tab and visible characters, RFC 9110 §5.5 lets bytes above ASCII pass. */
const invalidText = /[^\t\x20-\x7e\x80-\xff]/;
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

/** Reads a trailer section (RFC 9112 §7.1.2) line by line, to refuse what is none; nothing of it is kept. */
export function checkTrailer(line: string): void {
  addHeader(Object.create(null), line);
}

function statusOf(line: string): number {
  const status = statusLine.exec(line)?.[1];
  if (status === undefined) throw badResponse('the status line is not one of HTTP/1.1');
  return Number(status);
}

function addHeader(headers: Record<string, string | string[]>, line: string): void {
  const colon = line.indexOf(':');
  const name = nameOf(colon === -1 ? '' : line.slice(0, colon));
  const value = trimBlanks(line.slice(colon + 1));
  if (invalidText.test(value)) throw badResponse(`the header ${name} holds control characters`);
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
