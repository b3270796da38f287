import type { Readable } from 'node:stream';
import { ExchangeFailure } from './exchange-failure.ts';
import type { ResponseHeaders } from './response-head.ts';

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
  onResponseStart(status: number, headers: ResponseHeaders, reason: string): void;
  /** A piece of the body, whose memory is only lent until the call returns. */
  onResponseData(piece: Buffer): void;
  onResponseEnd(): void;
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
